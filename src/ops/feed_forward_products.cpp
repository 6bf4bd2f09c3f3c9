#include "ops/feed_forward_products.h"

#include "ops/squared_relu.h"

#ifdef HEADSCOPE_CUDA
#include "ops/cuda/fused_products.h"
#include "ops/cuda/inputs.h"
#endif

namespace headscope {
namespace {

at::Tensor composed_forward(const at::Tensor& x_nm, const at::Tensor& weight_fm) {
  at::Tensor inner_nf = at::mm(x_nm, weight_fm.t());
  squared_relu_forward_(inner_nf);
  return inner_nf;
}

at::Tensor composed_backward(const at::Tensor& d_nm, const at::Tensor& weight_mf, const at::Tensor& inner_nf) {
  at::Tensor d_inner_nf = at::mm(d_nm, weight_mf);
  squared_relu_backward_(inner_nf, d_inner_nf);
  return d_inner_nf;
}

#ifdef HEADSCOPE_CUDA
bool has_kernel(const at::Tensor& x) {
  return x.is_cuda() && x.scalar_type() == at::kBFloat16 && x.is_contiguous() && cuda::is_aligned(x);
}

// What was fastest on an H200 with 16,384 to 65,536 rows: a small weight stays in the second-level cache anyway.
int forward_swizzle(const cuda::ProductShape& shape) {
  return shape.depth <= 1024 ? 1 : 8;
}
constexpr int backward_swizzle = 1;

void check_queued(bool queued) {
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  TORCH_CHECK(queued, "a product with squared ReLU could not be queued on the GPU");
}

// Undefined where no kernel takes these tensors.
at::Tensor kernel_forward(const at::Tensor& x_nm, const at::Tensor& weight_fm) {
  if (!has_kernel(x_nm) || !has_kernel(weight_fm)) return {};
  const c10::cuda::CUDAGuard device(x_nm.device());
  const cuda::ProductShape shape{x_nm.size(0), weight_fm.size(0), x_nm.size(1)};
  if (!cuda::supports_fused_products(shape)) return {};
  at::Tensor inner_nf = at::empty({shape.rows, shape.columns}, x_nm.options());
  check_queued(cuda::squared_relu_product(x_nm.const_data_ptr(), weight_fm.const_data_ptr(),
                                          inner_nf.mutable_data_ptr(), shape, forward_swizzle(shape),
                                          c10::cuda::getCurrentCUDAStream()));
  return inner_nf;
}

at::Tensor kernel_backward(const at::Tensor& d_nm, const at::Tensor& weight_mf, const at::Tensor& inner_nf) {
  if (!has_kernel(d_nm) || !has_kernel(weight_mf) || !has_kernel(inner_nf)) return {};
  const c10::cuda::CUDAGuard device(d_nm.device());
  const cuda::ProductShape shape{d_nm.size(0), weight_mf.size(1), d_nm.size(1)};
  if (!cuda::supports_fused_products(shape)) return {};
  at::Tensor d_inner_nf = at::empty({shape.rows, shape.columns}, d_nm.options());
  check_queued(cuda::squared_relu_product_backward(d_nm.const_data_ptr(), weight_mf.const_data_ptr(),
                                                   inner_nf.const_data_ptr(), d_inner_nf.mutable_data_ptr(), shape,
                                                   backward_swizzle, c10::cuda::getCurrentCUDAStream()));
  return d_inner_nf;
}
#else
at::Tensor kernel_forward(const at::Tensor&, const at::Tensor&) {
  return {};
}
at::Tensor kernel_backward(const at::Tensor&, const at::Tensor&, const at::Tensor&) {
  return {};
}
#endif

}  // namespace

at::Tensor squared_relu_product(const at::Tensor& x_nm, const at::Tensor& weight_fm) {
  TORCH_CHECK(x_nm.dim() == 2 && weight_fm.dim() == 2 && x_nm.size(1) == weight_fm.size(1), "a product of ",
              x_nm.sizes(), " with the transpose of ", weight_fm.sizes());
  const at::Tensor inner_nf = kernel_forward(x_nm, weight_fm);
  return inner_nf.defined() ? inner_nf : composed_forward(x_nm, weight_fm);
}

at::Tensor squared_relu_product_backward(const at::Tensor& d_nm, const at::Tensor& weight_mf,
                                         const at::Tensor& inner_nf) {
  TORCH_CHECK(d_nm.dim() == 2 && weight_mf.dim() == 2 && d_nm.size(1) == weight_mf.size(0) && inner_nf.dim() == 2 &&
                  inner_nf.size(0) == d_nm.size(0) && inner_nf.size(1) == weight_mf.size(1),
              "a product of ", d_nm.sizes(), " with ", weight_mf.sizes(), " for ", inner_nf.sizes());
  const at::Tensor d_inner_nf = kernel_backward(d_nm, weight_mf, inner_nf);
  return d_inner_nf.defined() ? d_inner_nf : composed_backward(d_nm, weight_mf, inner_nf);
}

}  // namespace headscope
