// AdamW (Loshchilov and Hutter 2019), weight decay apart from the gradient.
#pragma once

#include <vector>

#include "model/decoder.h"
#include "optim/decay.h"
#include "settings/train_options.h"

namespace headscope {

// Copies share their tensors.
class AdamW {
 public:
  // decays: of each parameter; empty: options.weight_decay for all.
  AdamW(NamedTensors parameters, AdamWOptions options, std::vector<Decay> decays = {});

  void step(double lr);

  // First and second moments by name, and the number of steps: what a checkpoint holds. They share memory with this
  // object.
  [[nodiscard]] NamedTensors state() const;

  [[nodiscard]] const AdamWOptions& options() const { return options_; }
  [[nodiscard]] const NamedTensors& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<at::Tensor>& first() const { return first_; }
  [[nodiscard]] const std::vector<at::Tensor>& second() const { return second_; }
  [[nodiscard]] const std::vector<Decay>& decays() const { return decays_; }
  // float32, one for each parameter.
  [[nodiscard]] const at::Tensor& steps() const { return all_steps_; }

 private:
  void step_those_with(const Decay& decay, double lr);

  AdamWOptions options_;
  NamedTensors parameters_;
  std::vector<Decay> decays_;
  std::vector<at::Tensor> first_, second_;
  at::Tensor all_steps_;
  std::vector<at::Tensor> steps_;  // its elements
};

}  // namespace headscope
