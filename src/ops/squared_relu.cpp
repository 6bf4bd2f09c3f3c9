#include "ops/squared_relu.h"

namespace headscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Keeps max(x, 0) alone.
class SquaredRelu : public torch::autograd::Function<SquaredRelu> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x) {
    const at::Tensor positive = at::relu(x);
    context->save_for_backward({positive});
    return positive * positive;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    return {(gradients[0] * context->get_saved_variables()[0]).mul_(2)};
  }
};

}  // namespace

at::Tensor squared_relu(const at::Tensor& x) {
  return SquaredRelu::apply(x);
}

}  // namespace headscope
