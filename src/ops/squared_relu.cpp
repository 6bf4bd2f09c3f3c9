#include "ops/squared_relu.h"

#ifdef HEADSCOPE_CUDA
#include "ops/cuda/inputs.h"
#include "ops/cuda/squared_relu.h"
#endif

namespace headscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor composed_forward(const at::Tensor& x) {
  return at::relu(x).square_();
}

at::Tensor composed_backward(const at::Tensor& x, const at::Tensor& dy) {
  return at::relu(x).mul_(dy).mul_(2);
}

#ifdef HEADSCOPE_CUDA
bool has_kernel(const at::Tensor& x) {
  return cuda::has_kernel_type(x);
}

bool has_kernel_in_place(const at::Tensor& x) {
  return has_kernel(x) && x.is_contiguous() && cuda::is_aligned(x);
}

void kernel_forward_(at::Tensor& x) {
  cuda::squared_relu_forward(x.const_data_ptr(), x.mutable_data_ptr(), x.numel(), cuda::element_type(x),
                             c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void kernel_backward_(const at::Tensor& given, at::Tensor& dy) {
  const at::Tensor y = cuda::kernel_input(given);
  cuda::squared_relu_backward_of_output(y.const_data_ptr(), dy.const_data_ptr(), dy.mutable_data_ptr(), y.numel(),
                                        cuda::element_type(y), c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

at::Tensor kernel_forward(const at::Tensor& given) {
  const at::Tensor x = cuda::kernel_input(given);
  at::Tensor y = at::empty_like(x);
  cuda::squared_relu_forward(x.const_data_ptr(), y.mutable_data_ptr(), x.numel(), cuda::element_type(x),
                             c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}

at::Tensor kernel_backward(const at::Tensor& given, const at::Tensor& upstream) {
  const at::Tensor x = cuda::kernel_input(given), dy = cuda::kernel_input(upstream);
  at::Tensor dx = at::empty_like(x);
  cuda::squared_relu_backward(x.const_data_ptr(), dy.const_data_ptr(), dx.mutable_data_ptr(), x.numel(),
                              cuda::element_type(x), c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return dx;
}
#else
bool has_kernel(const at::Tensor&) {
  return false;
}
bool has_kernel_in_place(const at::Tensor&) {
  return false;
}
void kernel_forward_(at::Tensor&) {}
void kernel_backward_(const at::Tensor&, at::Tensor&) {}
at::Tensor kernel_forward(const at::Tensor& x) {
  return composed_forward(x);
}
at::Tensor kernel_backward(const at::Tensor& x, const at::Tensor& dy) {
  return composed_backward(x, dy);
}
#endif

class SquaredRelu : public torch::autograd::Function<SquaredRelu> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x) {
    context->save_for_backward({x});
    return has_kernel(x) ? kernel_forward(x) : composed_forward(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {has_kernel(x) ? kernel_backward(x, gradients[0]) : composed_backward(x, gradients[0])};
  }
};

}  // namespace

at::Tensor squared_relu(const at::Tensor& x) {
  return SquaredRelu::apply(x);
}

void squared_relu_forward_(at::Tensor& x) {
  if (has_kernel_in_place(x))
    kernel_forward_(x);
  else
    x.relu_().square_();
}

void squared_relu_backward_(const at::Tensor& y, at::Tensor& dy) {
  if (has_kernel_in_place(dy))
    kernel_backward_(y, dy);
  else
    dy.mul_(y.sqrt()).mul_(2);
}

}  // namespace headscope
