#include "ops/linear_cross_entropy.h"

#include <torch/csrc/autograd/grad_mode.h>

#include "ops/device.h"
#include "ops/linear.h"

#ifdef HEADSCOPE_CUDA
#include "ops/cuda/cross_entropy.h"
#include "ops/cuda/inputs.h"
#endif

namespace headscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct Slice {
  std::int64_t first, count;
};

std::vector<Slice> slices_of(std::int64_t tokens, std::int64_t vocabulary, std::int64_t slice_bytes) {
  const std::int64_t rows =
      std::max<std::int64_t>(1, slice_bytes / (vocabulary * static_cast<std::int64_t>(sizeof(float))));
  std::vector<Slice> slices;
  for (std::int64_t first = 0; first < tokens; first += rows) slices.push_back({first, std::min(rows, tokens - first)});
  return slices;
}

// log softmax(logits) of each row's target: [n, 1]. Some rows at a time: without gradients nothing else is needed of an
// array that is as large as the logits.
at::Tensor target_log_p(const at::Tensor& logits_nv, const at::Tensor& target_n1, at::ScalarType wide) {
  constexpr std::int64_t bytes_at_once = std::int64_t{16} << 20;
  std::vector<at::Tensor> parts;
  for (const Slice& rows : slices_of(logits_nv.size(0), logits_nv.size(1), bytes_at_once))
    parts.push_back(at::log_softmax(logits_nv.narrow(0, rows.first, rows.count), -1, wide)
                        .gather(1, target_n1.narrow(0, rows.first, rows.count)));
  return at::cat(parts);
}

// Logits become softmax - one-hot. Returns -log softmax of each row's target.
at::Tensor composed_cross_entropy_(at::Tensor& logits_nv, const at::Tensor& targets_n) {
  const at::Tensor target = targets_n.unsqueeze(1);
  at::Tensor log_p = at::log_softmax(logits_nv, -1, inner_type(logits_nv.scalar_type()));
  const at::Tensor losses = -log_p.gather(1, target).squeeze(1);
  log_p.exp_().scatter_add_(1, target, at::full({1, 1}, -1, log_p.options()).expand_as(target));
  logits_nv.copy_(log_p);
  return losses;
}

#ifdef HEADSCOPE_CUDA
at::Tensor cross_entropy_(at::Tensor& logits_nv, const at::Tensor& targets_n) {
  if (!cuda::has_kernel_type(logits_nv) || !logits_nv.is_contiguous())
    return composed_cross_entropy_(logits_nv, targets_n);
  const at::Tensor targets = targets_n.contiguous();
  at::Tensor losses = at::empty({logits_nv.size(0)}, logits_nv.options().dtype(at::kFloat));
  cuda::cross_entropy(logits_nv.mutable_data_ptr(), targets.const_data_ptr<std::int64_t>(),
                      losses.mutable_data_ptr<float>(), logits_nv.size(0), logits_nv.size(1),
                      cuda::element_type(logits_nv), c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return losses;
}
#else
at::Tensor cross_entropy_(at::Tensor& logits_nv, const at::Tensor& targets_n) {
  return composed_cross_entropy_(logits_nv, targets_n);
}
#endif

class LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
 public:
  static Variable forward(AutogradContext* context, const Variable& x_nm, const Variable& weight_vm,
                          const Variable& targets_n, std::int64_t slice_bytes, double cap, bool with_gradients) {
    const std::int64_t tokens = x_nm.size(0);
    const at::ScalarType wide = inner_type(x_nm.scalar_type());
    const at::Tensor weight = weight_vm.to(x_nm.scalar_type());
    at::Tensor loss = at::zeros({}, x_nm.options().dtype(wide));
    at::Tensor dx_nm, dw_vm;
    if (with_gradients) {
      dx_nm = at::empty_like(x_nm);
      dw_vm = at::zeros_like(weight_vm);
    }
    for (const Slice& slice : slices_of(tokens, weight.size(0), slice_bytes)) {
      const at::Tensor x = x_nm.narrow(0, slice.first, slice.count);
      const at::Tensor target = targets_n.narrow(0, slice.first, slice.count).unsqueeze(1);
      at::Tensor logits = capped_logits(x, weight, cap);
      if (!with_gradients) {
        loss -= target_log_p(logits, target, wide).sum();
        continue;
      }
      at::Tensor log_p = at::log_softmax(logits, -1, wide);
      if (cap == 0) logits.reset();  // not needed again, and the largest array
      loss -= log_p.gather(1, target).sum();
      // d loss / d logits = softmax - one-hot; the factor 1/tokens comes in backward, where numbers are wide.
      at::Tensor d_logits = log_p.exp_();
      d_logits.scatter_add_(1, target, at::full({1, 1}, -1, d_logits.options()).expand_as(target));
      d_logits = d_logits.to(x.scalar_type());
      if (cap != 0) d_logits.mul_(1 - (logits / cap).square());  // tanh' = 1 - tanh²
      at::Tensor dx = dx_nm.narrow(0, slice.first, slice.count);
      at::mm_out(dx, d_logits, weight);
      if (dw_vm.scalar_type() == x.scalar_type())
        dw_vm.addmm_(d_logits.t(), x);
      else
        dw_vm.add_(at::mm(d_logits.t(), x));
    }
    context->saved_data["tokens"] = tokens;
    context->save_for_backward({dx_nm, dw_vm});
    return loss.div_(tokens);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor factor = gradients[0] / context->saved_data["tokens"].toInt();
    return {(saved[0] * factor).to(saved[0].scalar_type()),
            saved[1] * factor,
            Variable(),
            Variable(),
            Variable(),
            Variable()};
  }
};

}  // namespace

at::Tensor capped_logits(const at::Tensor& x_nm, const at::Tensor& weight_vm, double cap) {
  const at::Tensor logits = at::linear(x_nm, weight_vm);
  return cap == 0 ? logits : at::tanh(logits / cap) * cap;
}

at::Tensor linear_cross_entropy(const at::Tensor& x_nm, const at::Tensor& weight_vm, const at::Tensor& targets_n,
                                std::int64_t slice_bytes, double cap) {
  const bool with_gradients = at::GradMode::is_enabled() && (x_nm.requires_grad() || weight_vm.requires_grad());
  return LinearCrossEntropy::apply(x_nm, weight_vm, targets_n, slice_bytes, cap, with_gradients);
}

at::Tensor loss_and_gradients(const at::Tensor& x_nm, const at::Tensor& weight_vm, const at::Tensor& targets_n,
                              double share, at::Tensor& loss, at::Tensor& d_weight_vm, bool adds,
                              std::int64_t slice_bytes) {
  const std::int64_t tokens = x_nm.size(0), row_bytes = weight_vm.size(0) * x_nm.element_size();
  // Slices of one size, in multiples of what the products are tiled by.
  constexpr std::int64_t tile = 256;
  const std::int64_t most = std::max<std::int64_t>(1, slice_bytes / row_bytes), slices = (tokens + most - 1) / most;
  const std::int64_t rows = std::min(most, ((tokens + slices - 1) / slices + tile - 1) / tile * tile);
  const double factor = share / static_cast<double>(tokens);
  at::Tensor dx_nm = at::empty_like(x_nm);
  for (std::int64_t first = 0; first < tokens; first += rows) {
    const std::int64_t count = std::min(rows, tokens - first);
    const at::Tensor x = x_nm.narrow(0, first, count);
    at::Tensor logits = at::mm(x, weight_vm.t());
    loss.add_(cross_entropy_(logits, targets_n.narrow(0, first, count)).sum(), factor);
    at::Tensor dx = dx_nm.narrow(0, first, count);
    at::addmm_out(dx, dx, logits, weight_vm, 0, factor);
    add_weight_gradient(d_weight_vm, logits, x, factor, adds || first > 0);
  }
  return dx_nm;
}

}  // namespace headscope
