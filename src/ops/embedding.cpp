#include "ops/embedding.h"

#ifdef HEADSCOPE_CUDA
#include "ops/cuda/embedding.h"
#include "ops/cuda/inputs.h"
#endif

namespace headscope {
namespace {

#ifdef HEADSCOPE_CUDA
bool add_by_kernel(at::Tensor& gradient_vm, const at::Tensor& tokens_n, const at::Tensor& dx_nm, double scale) {
  if (!cuda::has_kernel_type(dx_nm) || gradient_vm.scalar_type() != at::kFloat || !gradient_vm.is_contiguous() ||
      dx_nm.size(1) % 4 != 0)
    return false;
  const at::Tensor dx = cuda::kernel_input(dx_nm);
  const auto [sorted, order] = at::sort(tokens_n, /*stable=*/true, 0, /*descending=*/false);
  const cuda::EmbeddingShape shape{dx.size(0), dx.size(1), static_cast<float>(scale), cuda::element_type(dx)};
  const at::Tensor scratch = at::empty({cuda::embedding_scratch(shape)}, gradient_vm.options().requires_grad(false));
  cuda::add_embedding_gradient(dx.const_data_ptr(), sorted.const_data_ptr<std::int64_t>(),
                               order.const_data_ptr<std::int64_t>(), gradient_vm.mutable_data_ptr<float>(),
                               scratch.mutable_data_ptr<float>(), shape, c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return true;
}
#else
bool add_by_kernel(at::Tensor&, const at::Tensor&, const at::Tensor&, double) {
  return false;
}
#endif

}  // namespace

void add_embedding_gradient(at::Tensor& gradient_vm, const at::Tensor& tokens_n, const at::Tensor& dx_nm,
                            double scale) {
  if (!add_by_kernel(gradient_vm, tokens_n, dx_nm, scale))
    gradient_vm.index_add_(0, tokens_n, dx_nm.to(gradient_vm.scalar_type()), scale);
}

}  // namespace headscope
