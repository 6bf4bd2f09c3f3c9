#include "ops/rms_norm.h"

#include "ops/precision.h"

namespace headscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Keeps x and one number for each row; autograd through the composed form would keep every intermediate of x's size.
class RmsNorm : public torch::autograd::Function<RmsNorm> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x, const std::optional<at::Tensor>& gain,
                          double eps) {
    const at::Tensor wide = x.to(inner_type(x.scalar_type()));
    const at::Tensor inverse =
        (at::linalg_vector_norm(wide, 2, -1, /*keepdim=*/true).square_().div_(x.size(-1)) += eps).rsqrt_();
    at::Tensor y = wide * inverse;
    if (gain) y.mul_(*gain);
    context->save_for_backward({x, gain.value_or(at::Tensor()), inverse});
    return y.to(x.scalar_type());
  }

  // y = g·x·r, r = (mean x² + eps)^-1/2: dx = r·(g·dy - x̂·mean(x̂·g·dy)), x̂ = r·x; dg = Σ x̂·dy.
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& gain = saved[1];
    const at::Tensor dy = gradients[0].to(inner_type(x.scalar_type()));
    const at::Tensor unit = x.to(dy.scalar_type()) * saved[2];
    at::Tensor product = unit * dy;
    at::Tensor d_gain;
    if (gain.defined()) d_gain = product.sum_to_size(gain.sizes());
    at::Tensor dx = dy;
    if (gain.defined()) {
      product.mul_(gain);
      dx = dy * gain;
    }
    const at::Tensor along = product.mean(-1, /*keepdim=*/true);
    dx = at::addcmul(dx, unit, along, -1).mul_(saved[2]);
    return {dx.to(x.scalar_type()), d_gain, Variable()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  return RmsNorm::apply(x, gain.defined() ? std::optional(gain) : std::nullopt, eps);
}

}  // namespace headscope
