// A trained model with all that made it: what inspect, roles and surgery start from.
#pragma once

#include "experiments/setup.h"
#include "heads/metrics.h"
#include "model/decoder.h"
#include "probe/batches.h"

namespace headscope {

struct TrainedModel {
  std::filesystem::path checkpoint;
  Decoder model;  // float32, without gradients
  Setup setup;    // what it was trained with
  Moment moment;  // what it had seen
};

// `place`: the folder of a checkpoint, or of a run, which stands for its newest one. Throws Error(Fault::input) naming
// the file: there is none (of a study's folder: with the names of its conditions), it is damaged, or its tensors have
// other shapes than its configuration says.
TrainedModel open_trained_model(const std::filesystem::path& place, at::Device device);

// The fixed batches that training measures its validation loss on.
std::vector<Batch> validation_batches(const TrainOptions& options, const Tokens& tokens, const ComputeDevice& device);

}  // namespace headscope
