// The optimizers of a decoder: Muon on the matrices of its layers, AdamW on everything else.
#pragma once

#include "model/decoder.h"
#include "optim/adamw.h"
#include "optim/muon.h"

namespace headscope {

class Optimizers {
 public:
  // Keeps references to the model's parameters (tensors are shared, not copied).
  Optimizers(const Decoder& model, const OptimizerOptions& options);

  // One update from the gradients, learning rates times `lr_factor`.
  void step(double lr_factor);

  [[nodiscard]] NamedTensors state() const;

 private:
  OptimizerOptions options_;
  Muon muon_;
  AdamW adamw_;
};

}  // namespace headscope
