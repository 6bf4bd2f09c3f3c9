#include "probe/batches.h"

namespace headscope {
namespace {

// fill(inputs, targets) writes both.
template <class Fill>
Batch filled_batch(const TrainOptions& options, const ComputeDevice& device, Fill&& fill) {
  const at::Tensor tokens_bt = at::empty({options.batch, options.seq_len}, at::kLong);
  const at::Tensor targets_bt = at::empty_like(tokens_bt);
  fill(tokens_bt.data_ptr<std::int64_t>(), targets_bt.data_ptr<std::int64_t>());
  return {tokens_bt.to(device.device), targets_bt.to(device.device)};
}

}  // namespace

Batch training_batch(const TrainOptions& options, const Tokens& tokens, BlockOrder& order, std::int64_t position,
                     const ComputeDevice& device) {
  return filled_batch(options, device, [&](std::int64_t* inputs, std::int64_t* targets) {
    fill_batch(tokens, order, position, options.batch, options.seq_len, inputs, targets);
  });
}

std::vector<Batch> validation_batches(const TrainOptions& options, const Tokens& tokens, const ComputeDevice& device) {
  std::vector<Batch> batches;
  for (std::int64_t i = 0; i < options.validation_batches; ++i)
    batches.push_back(filled_batch(options, device, [&](std::int64_t* inputs, std::int64_t* targets) {
      fill_fixed_batch(tokens, i, options.batch, options.seq_len, inputs, targets);
    }));
  return batches;
}

}  // namespace headscope
