// Batches of tokens as a model takes them.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "data/blocks.h"
#include "ops/device.h"

namespace headscope {

struct Batch {
  at::Tensor tokens_bt, targets_bt;
};

// The sequences of a batch, and the tokens of a sequence.
struct BatchShape {
  std::int64_t batch = 0, seq_len = 0;
};

// The blocks that come after `position` others.
Batch training_batch(const Tokens& tokens, BlockOrder& order, std::int64_t position, const BatchShape& shape,
                     const ComputeDevice& device);

// Fixed batches in their order in the text: those of the validation loss; probes measure the first of them.
std::vector<Batch> fixed_batches(const Tokens& tokens, std::int64_t count, const BatchShape& shape,
                                 const ComputeDevice& device);

}  // namespace headscope
