// AdamW (Loshchilov and Hutter 2019), weight decay apart from the gradient.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

namespace headscope {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.2;
};

class AdamW {
 public:
  using NamedTensor = std::pair<std::string, at::Tensor>;
  AdamW(std::vector<NamedTensor> parameters, AdamWOptions options);

  void step(double lr);

  // First and second moments by name, and the number of steps: what a checkpoint holds. They share memory with this
  // object.
  [[nodiscard]] std::vector<NamedTensor> state() const;

 private:
  AdamWOptions options_;
  std::vector<NamedTensor> parameters_;
  std::vector<at::Tensor> first_, second_, steps_;
};

}  // namespace headscope
