#include "ops/linear.h"

#include <ATen/Context.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string_view>

namespace headscope {
namespace {

// Torch's compiler calls these; they have no function of their own.
using Reorder = at::Tensor(const at::Tensor& weight, std::optional<c10::SymInt> rows);
using Multiply = at::Tensor(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                            std::string_view behind, c10::List<std::optional<at::Scalar>> scalars,
                            std::optional<std::string_view> algorithm);

template <class Function>
std::optional<c10::TypedOperatorHandle<Function>> find(const char* name) {
  const auto found = c10::Dispatcher::singleton().findSchema({name, ""});
  return found ? std::optional(found->template typed<Function>()) : std::nullopt;
}

// Of bfloat16 only where the processor has instructions for it: without, it is slower than the ordinary product.
bool multiplies_well(const at::Tensor& weight) {
  if (!weight.is_cpu() || !at::globalContext().hasMKLDNN()) return false;
  if (weight.scalar_type() == at::kFloat) return true;
#if defined(__x86_64__)
  return weight.scalar_type() == at::kBFloat16 && __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

}  // namespace

at::Tensor apply_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const at::ScalarType type = x.scalar_type();
  const auto cast_bias = bias.defined() ? std::optional(bias.to(type)) : std::nullopt;
  if (!weight.is_mkldnn()) return at::linear(x, weight.to(type), cast_bias);
  static const auto multiply = find<Multiply>("mkldnn::_linear_pointwise");
  return multiply->call(x.contiguous(), weight, cast_bias, "none", c10::List<std::optional<at::Scalar>>(), "");
}

void add_weight_gradient(at::Tensor& dw, const at::Tensor& dy, const at::Tensor& x, double factor, bool adds) {
  const int kept = adds ? 1 : 0;
  if (dw.scalar_type() == x.scalar_type())
    dw.addmm_(dy.t(), x, kept, factor);
  else if (x.is_cuda())
    at::addmm_out(dw, dw, dy.t(), x, dw.scalar_type(), kept, factor);
  else
    dw.addmm_(dy.t().to(dw.scalar_type()), x.to(dw.scalar_type()), kept, factor);
}

at::Tensor packed_weight(const at::Tensor& weight, std::int64_t rows) {
  static const auto reorder = find<Reorder>("mkldnn::_reorder_linear_weight");
  if (!multiplies_well(weight) || !reorder || !find<Multiply>("mkldnn::_linear_pointwise")) return weight;
  return reorder->call(weight.contiguous(), rows);
}

}  // namespace headscope
