// Batches of tokens as a model takes them.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "data/blocks.h"
#include "ops/device.h"
#include "settings/train_options.h"

namespace headscope {

struct Batch {
  at::Tensor tokens_bt, targets_bt;
};

// The blocks that come after `position` others.
Batch training_batch(const TrainOptions& options, const Tokens& tokens, BlockOrder& order, std::int64_t position,
                     const ComputeDevice& device);

// The fixed batches of the validation loss, in their order in the text; probes measure the first of them.
std::vector<Batch> validation_batches(const TrainOptions& options, const Tokens& tokens, const ComputeDevice& device);

}  // namespace headscope
