#include "experiments/surgery/quantise.h"

namespace headscope {

at::Tensor quantised(const at::Tensor& k_bthd, std::int64_t bits, ScaleOf scale_of) {
  const at::Tensor k = k_bthd.scalar_type() == at::kDouble ? k_bthd : k_bthd.to(at::kFloat);
  const at::Tensor largest =
      scale_of == ScaleOf::tensor ? k.abs().amax() : k.abs().amax({0, 1}, /*keepdim=*/true);  // [] or [1, 1, h, d]
  const auto levels = static_cast<double>((std::int64_t{1} << (bits - 1)) - 1);
  const at::Tensor scale = largest / levels;
  const at::Tensor rounded = at::round(k / scale).clamp(-levels, levels) * scale;
  return at::where(scale > 0, rounded, at::zeros_like(k)).to(k_bthd.scalar_type());
}

EditKeys quantisation(std::int64_t bits, ScaleOf scale_of, const std::vector<std::int64_t>& layers) {
  return [=](std::int64_t layer, const at::Tensor& k_bthd) {
    const bool chosen = std::binary_search(layers.begin(), layers.end(), layer);
    return chosen ? quantised(k_bthd, bits, scale_of) : k_bthd;
  };
}

}  // namespace headscope
