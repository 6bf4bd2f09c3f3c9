#include "ops/rms_norm.h"

#include "ops/cpu/elementwise.h"
#include "ops/device.h"
#include "ops/gradients.h"

#ifdef HEADSCOPE_CUDA
#include "ops/cuda/inputs.h"
#include "ops/cuda/rms_norm.h"
#endif

namespace headscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// The shape of one number for each row of x.
std::vector<std::int64_t> as_rows(const at::Tensor& x) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = 1;
  return sizes;
}

NormedSum composed_forward(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& gain, double eps) {
  const at::Tensor sum = delta.defined() ? x + delta : x;
  const at::Tensor wide = sum.to(inner_type(x.scalar_type()));
  at::Tensor inverse =
      at::linalg_vector_norm(wide, 2, -1, /*keepdim=*/true).square_().div_(x.size(-1)).add_(eps).rsqrt_();
  at::Tensor y = wide * inverse;
  if (gain.defined()) y.mul_(gain);
  return {sum, y.to(x.scalar_type()), inverse};
}

// y = g·x·r, r = (mean x² + eps)^-1/2: dx = r·(g·dy - x̂·mean(x̂·g·dy)), x̂ = r·x; dg = Σ x̂·dy.
NormGradients composed_backward(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& inverse,
                                const at::Tensor& upstream, const at::Tensor& d_sum) {
  const at::Tensor dy = upstream.to(inner_type(x.scalar_type()));
  const at::Tensor unit = x.to(dy.scalar_type()) * inverse.view(as_rows(x));
  at::Tensor product = unit * dy, gain_parts, dx = dy;
  if (gain.defined()) {
    gain_parts = product.sum_to_size(gain.sizes()).view({1, -1});
    product.mul_(gain);
    dx = dy * gain;
  }
  const at::Tensor along = product.mean(-1, /*keepdim=*/true);
  dx = at::addcmul(dx, unit, along, -1).mul_(inverse.view(as_rows(x)));
  if (d_sum.defined()) dx.add_(d_sum);
  return {dx.to(x.scalar_type()), gain_parts};
}

#ifdef HEADSCOPE_CUDA
// The kernel takes rows that are contiguous, and tokens at any one distance: [..., heads, d] sliced along the heads.
std::optional<cuda::RmsNormShape> kernel_shape(const at::Tensor& x, const at::Tensor& gain) {
  const bool gain_fits =
      !gain.defined() || (gain.scalar_type() == at::kFloat && gain.is_contiguous() && gain.dim() <= 2);
  if (!cuda::has_kernel_type(x) || !gain_fits || x.dim() < 2 || x.size(-1) > 8192 ||
      x.numel() / x.size(-1) >= std::int64_t{1} << 31)
    return std::nullopt;
  const int d = static_cast<int>(x.size(-1));
  if (!cuda::supports_rms_norm(d, cuda::element_type(x)) || x.stride(-1) != 1) return std::nullopt;
  if (x.stride(-2) != d && x.size(-2) != 1) return std::nullopt;
  for (std::int64_t i = x.dim() - 3; i > 0; --i)  // the dimensions before the heads are one
    if (x.stride(i - 1) != x.stride(i) * x.size(i)) return std::nullopt;
  cuda::RmsNormShape shape;
  shape.rows = x.numel() / d;
  const bool plain = x.is_contiguous();
  shape.inner = plain ? 1 : x.size(-2);
  shape.outer_stride = plain ? d : x.dim() > 2 ? x.stride(-3) : x.numel();
  shape.d = d;
  shape.gains = gain.defined() ? static_cast<int>(gain.numel() / d) : 0;
  shape.type = cuda::element_type(x);
  const std::int64_t aligned = 16 / static_cast<std::int64_t>(x.element_size());
  if ((shape.inner > 1 && shape.outer_stride % aligned != 0) || !cuda::is_aligned(x) || !cuda::is_aligned(gain))
    return std::nullopt;
  return shape;
}

std::optional<NormedSum> kernel_forward(const at::Tensor& x, const at::Tensor& given, const at::Tensor& gain,
                                        double eps) {
  const auto shape = kernel_shape(x, gain);
  if (!shape || (given.defined() && !x.is_contiguous())) return std::nullopt;
  const at::Tensor delta = given.defined() ? cuda::kernel_input(given) : given;
  const NormedSum result{delta.defined() ? at::empty(x.sizes(), x.options()) : x, at::empty(x.sizes(), x.options()),
                         at::empty({shape->rows}, x.options().dtype(at::kFloat))};
  cuda::rms_norm_forward(x.const_data_ptr(), delta.defined() ? delta.const_data_ptr() : nullptr,
                         cuda::float_pointer(gain), delta.defined() ? result.sum.mutable_data_ptr() : nullptr,
                         result.y.mutable_data_ptr(), result.inverse.mutable_data_ptr<float>(), static_cast<float>(eps),
                         *shape, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}

std::optional<NormGradients> kernel_backward(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& inverse,
                                             const at::Tensor& upstream, const at::Tensor& given) {
  const auto shape = kernel_shape(x, gain);
  if (!shape) return std::nullopt;
  const at::Tensor dy = cuda::kernel_input(upstream), d_sum = given.defined() ? cuda::kernel_input(given) : given;
  NormGradients result{d_sum.defined() ? d_sum : at::empty(x.sizes(), x.options()), {}};
  if (gain.defined())
    result.gain_parts = at::empty({cuda::rms_norm_partials(*shape), gain.numel()}, gain.options().requires_grad(false));
  cuda::rms_norm_backward(x.const_data_ptr(), cuda::float_pointer(gain), inverse.const_data_ptr<float>(),
                          dy.const_data_ptr(), d_sum.defined() ? d_sum.const_data_ptr() : nullptr,
                          result.dx.mutable_data_ptr(),
                          gain.defined() ? result.gain_parts.mutable_data_ptr<float>() : nullptr, *shape,
                          c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return result;
}
#else
std::optional<NormedSum> kernel_forward(const at::Tensor&, const at::Tensor&, const at::Tensor&, double) {
  return std::nullopt;
}
std::optional<NormGradients> kernel_backward(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                             const at::Tensor&) {
  return std::nullopt;
}
#endif

// Keeps x and one number for each row; autograd through the composed form would keep every intermediate of x's size.
class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x, const std::optional<at::Tensor>& gain,
                          double eps) {
    const at::Tensor gain_or_none = gain.value_or(at::Tensor());
    const NormedSum normed = rms_norm_forward(x, {}, gain_or_none, eps);
    context->save_for_backward({x, gain_or_none, normed.inverse});
    return normed.y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& gain = saved[1];
    const NormGradients result = rms_norm_backward(saved[0], gain, saved[2], gradients[0], {});
    return {result.dx, gain.defined() ? result.gain_parts.sum(0).view_as(gain) : at::Tensor(), Variable()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  const bool one_gain = !gain.defined() || (gain.dim() == 1 && gain.is_contiguous());
  if (takes_cpu_kernels(x, gain) && one_gain && x.is_contiguous()) {
    at::Tensor y = at::empty_like(x);
    cpu::rms_norm(x.const_data_ptr<float>(), gain.defined() ? gain.const_data_ptr<float>() : nullptr,
                  y.mutable_data_ptr<float>(), x.numel() / x.size(-1), x.size(-1), static_cast<float>(eps));
    return y;
  }
  return RmsNorm::apply(x, gain.defined() ? std::optional(gain) : std::nullopt, eps);
}

NormedSum rms_norm_forward(const at::Tensor& x, const at::Tensor& delta, const at::Tensor& gain, double eps) {
  const auto fast = kernel_forward(x, delta, gain, eps);
  return fast ? *fast : composed_forward(x, delta, gain, eps);
}

NormGradients rms_norm_backward(const at::Tensor& sum, const at::Tensor& gain, const at::Tensor& inverse,
                                const at::Tensor& dy, const at::Tensor& d_sum) {
  const auto fast = kernel_backward(sum, gain, inverse, dy, d_sum);
  return fast ? *fast : composed_backward(sum, gain, inverse, dy, d_sum);
}

}  // namespace headscope
