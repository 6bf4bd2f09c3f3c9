#include "ops/attention.h"

namespace headscope {

at::Tensor causal_attention(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd,
                            double scale) {
  const auto heads_first = [](const at::Tensor& x_bthd) { return x_bthd.transpose(1, 2); };
  const bool grouped = q_bthd.size(2) != k_bthd.size(2);
  return at::scaled_dot_product_attention(heads_first(q_bthd), heads_first(k_bthd), heads_first(v_bthd),
                                          /*attn_mask=*/{}, /*dropout_p=*/0, /*is_causal=*/true, scale, grouped)
      .transpose(1, 2);
}

}  // namespace headscope
