// A trained model with all that made it: what inspect, roles and surgery start from.
#pragma once

#include "core/console.h"
#include "experiments/setup.h"
#include "heads/head_values.h"
#include "model/load.h"
#include "probe/batches.h"

namespace headscope {

struct TrainedModel {
  std::filesystem::path checkpoint;
  Decoder model;  // float32, without gradients
  Setup setup;    // what it was trained with
  Moment moment;  // what it had seen
};

// Throws Error(Fault::input) as load_model does.
TrainedModel open_trained_model(const std::filesystem::path& place, at::Device device);

// The fixed batches that training measures its validation loss on.
std::vector<Batch> validation_batches(const TrainOptions& options, const Tokens& tokens, const ComputeDevice& device);

}  // namespace headscope
