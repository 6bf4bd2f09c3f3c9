#include "ops/attention.h"

#include "ops/device.h"

namespace headscope {

at::Tensor rotary_table(std::int64_t positions, std::int64_t d, double base, at::ScalarType type) {
  const at::Tensor pair = at::arange(0, d, 2, at::kDouble) / static_cast<double>(d);
  const at::Tensor angles = at::outer(at::arange(positions, at::kDouble), at::pow(base, -pair));
  return at::polar(at::ones_like(angles), angles).to(at::toComplexType(type));
}

at::Tensor rotate(const at::Tensor& x_bthd, const at::Tensor& table) {
  const std::int64_t time = x_bthd.size(1);
  const at::Tensor wide = x_bthd.to(inner_type(x_bthd.scalar_type())).unflatten(-1, {-1, 2});
  const at::Tensor turned = at::view_as_complex(wide) * table.narrow(0, 0, time).unsqueeze(1);
  return at::view_as_real(turned).flatten(-2).to(x_bthd.scalar_type());
}

at::Tensor causal_attention(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd,
                            double scale) {
  const auto heads_first = [](const at::Tensor& x_bthd) { return x_bthd.transpose(1, 2); };
  const bool grouped = q_bthd.size(2) != k_bthd.size(2);
  return at::scaled_dot_product_attention(heads_first(q_bthd), heads_first(k_bthd), heads_first(v_bthd),
                                          /*attn_mask=*/{}, /*dropout_p=*/0, /*is_causal=*/true, scale, grouped)
      .transpose(1, 2);
}

}  // namespace headscope
