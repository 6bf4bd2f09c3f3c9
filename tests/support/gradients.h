// Gradients by autograd against central differences, in float64.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <vector>

namespace headscope::test {

// A tensor of the given shape with fixed random values.
inline at::Tensor random_tensor(at::IntArrayRef shape, std::uint64_t seed, at::ScalarType type = at::kDouble) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return at::randn(shape, generator, at::TensorOptions(at::kDouble)).to(type);
}

// The derivative of `loss` along a random direction of each input. A central difference with step h errs by h²·f'''/6
// and by rounding eps·|f|/h: with h = 1e-5 about 1e-10 for values near 1.
inline void expect_gradients(const std::vector<at::Tensor>& inputs, const std::function<at::Tensor()>& loss,
                             double tolerance = 1e-8) {
  const at::Tensor value = loss();
  const auto gradients = torch::autograd::grad({value}, inputs);
  const at::NoGradGuard no_gradients;
  const double h = 1e-5;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor direction = random_tensor(inputs[i].sizes(), 1000 + i);
    direction /= direction.norm();
    at::Tensor input = inputs[i];
    const at::Tensor before = input.clone();
    input.copy_(before + direction * h);
    const double above = loss().item<double>();
    input.copy_(before - direction * h);
    const double below = loss().item<double>();
    input.copy_(before);
    const double expected = (above - below) / (2 * h);
    const double actual = (gradients[i] * direction).sum().item<double>();
    EXPECT_NEAR(actual, expected, tolerance * std::max(1.0, std::abs(expected))) << "input " << i;
  }
}

}  // namespace headscope::test
