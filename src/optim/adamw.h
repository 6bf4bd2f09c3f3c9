// AdamW (Loshchilov and Hutter 2019), weight decay apart from the gradient.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "model/decoder.h"
#include "settings/train_options.h"

namespace headscope {

class AdamW {
 public:
  AdamW(NamedTensors parameters, AdamWOptions options);

  void step(double lr);

  // First and second moments by name, and the number of steps: what a checkpoint holds. They share memory with this
  // object.
  [[nodiscard]] NamedTensors state() const;

 private:
  AdamWOptions options_;
  NamedTensors parameters_;
  std::vector<at::Tensor> first_, second_, steps_;
};

}  // namespace headscope
