#include "ops/partial_sums.h"

#ifdef HEADSCOPE_CUDA
#include "ops/cuda/inputs.h"
#include "ops/cuda/partial_sums.h"
#endif

namespace headscope {
namespace {

#ifdef HEADSCOPE_CUDA
bool has_kernel(const PartialSums& sums) {
  return sums.parts.is_cuda() && sums.parts.scalar_type() == at::kFloat && sums.parts.is_contiguous() &&
         sums.gradient.scalar_type() == at::kFloat && sums.gradient.is_contiguous();
}

bool add_by_kernel(const std::vector<PartialSums>& all, bool adds) {
  for (const PartialSums& sums : all)
    if (!has_kernel(sums)) return false;
  cuda::PartialSumsTable table;
  table.adds = adds;
  const auto launch = [&] {
    cuda::add_partial_sums(table, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    table.count = 0;
  };
  for (const PartialSums& sums : all) {
    table.entries[table.count++] = {sums.parts.const_data_ptr<float>(), sums.gradient.mutable_data_ptr<float>(),
                                    static_cast<int>(sums.parts.size(0)), static_cast<int>(sums.parts.size(1))};
    if (table.count == cuda::PartialSumsTable::most) launch();
  }
  if (table.count > 0) launch();
  return true;
}
#else
bool add_by_kernel(const std::vector<PartialSums>&, bool) {
  return false;
}
#endif

}  // namespace

void add_partial_sums(const std::vector<PartialSums>& all, bool adds) {
  if (add_by_kernel(all, adds)) return;
  for (const PartialSums& sums : all) {
    at::Tensor gradient = sums.gradient;
    if (!adds) gradient.zero_();
    gradient.add_(sums.parts.sum(0).view_as(gradient));
  }
}

}  // namespace headscope
