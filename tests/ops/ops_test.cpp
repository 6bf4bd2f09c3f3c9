// Each operation against its definition, written out in loops.
#include <ATen/CPUGeneratorImpl.h>

#include "core/error.h"
#include "ops/attention.h"
#include "ops/device.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"
#include "ops/squared_relu.h"
#include "support/expect_error.h"
#include "support/gradients.h"

namespace headscope {
namespace {

using test::random_tensor;

constexpr double float32_eps = 1.2e-7;

TEST(RmsNorm, DividesByTheRootMeanSquare) {
  const at::Tensor x = random_tensor({5, 16}, 1), gain = random_tensor({16}, 2);
  const at::Tensor y = rms_norm(x, gain, 0.01);
  for (std::int64_t row = 0; row < 5; ++row) {
    double squares = 0;
    for (std::int64_t i = 0; i < 16; ++i) squares += std::pow(x[row][i].item<double>(), 2);
    for (std::int64_t i = 0; i < 16; ++i)
      EXPECT_NEAR(y[row][i].item<double>(),
                  x[row][i].item<double>() / std::sqrt(squares / 16 + 0.01) * gain[i].item<double>(), 1e-14);
  }
}

TEST(RmsNorm, GivesVectorsOfLengthRootD) {
  const at::Tensor y = rms_norm(random_tensor({100, 64}, 1, at::kFloat), {}, 1e-7);
  EXPECT_LT((y.norm(2, -1) - 8.0).abs().max().item<double>(), 64 * float32_eps);
}

TEST(RmsNorm, ComputesBfloat16InFloat32) {
  const at::Tensor x = random_tensor({50, 32}, 1).to(at::kBFloat16);
  const at::Tensor y = rms_norm(x, {}, 1e-7);
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  const at::Tensor exact = rms_norm(x.to(at::kDouble), {}, 1e-7);
  // One rounding to 8 bits: relative error at most 2^-8.
  EXPECT_LT(((y.to(at::kDouble) - exact).abs() / exact.abs()).max().item<double>(), 1.0 / 256);
}

TEST(Rotary, TurnsNeighbouringPairsByPositionTimesFrequency) {
  const std::int64_t d = 8;
  const at::Tensor x = random_tensor({1, 5, 2, d}, 1);
  const at::Tensor y = rotate(x, rotary_table(5, d, 100, at::kDouble));
  for (std::int64_t t = 0; t < 5; ++t)
    for (std::int64_t pair = 0; pair < d / 2; ++pair) {
      const double angle =
          static_cast<double>(t) * std::pow(100.0, -2.0 * static_cast<double>(pair) / static_cast<double>(d));
      const double a = x[0][t][1][2 * pair].item<double>(), b = x[0][t][1][2 * pair + 1].item<double>();
      EXPECT_NEAR(y[0][t][1][2 * pair].item<double>(), a * std::cos(angle) - b * std::sin(angle), 1e-14);
      EXPECT_NEAR(y[0][t][1][2 * pair + 1].item<double>(), a * std::sin(angle) + b * std::cos(angle), 1e-14);
    }
}

TEST(Attention, IsTheSoftmaxOverEarlierKeysOfTheHeadsGroup) {
  const std::int64_t time = 9, heads = 6, kv_heads = 2, d = 4;
  const at::Tensor q = random_tensor({1, time, heads, d}, 1), k = random_tensor({1, time, kv_heads, d}, 2),
                   v = random_tensor({1, time, kv_heads, d}, 3);
  const at::Tensor out = causal_attention(q, k, v, {.scale = 0.4});
  for (std::int64_t head = 0; head < heads; ++head)
    for (std::int64_t t = 0; t < time; ++t) {
      const std::int64_t group = head / (heads / kv_heads);
      at::Tensor sum = at::zeros({d}, at::kDouble);
      double weights = 0;
      for (std::int64_t s = 0; s <= t; ++s) {
        const double weight = std::exp(0.4 * (q[0][t][head] * k[0][s][group]).sum().item<double>());
        weights += weight;
        sum += weight * v[0][s][group];
      }
      EXPECT_LT((out[0][t][head] - sum / weights).abs().max().item<double>(), 1e-13);
    }
}

TEST(SquaredRelu, IsTheSquareOfThePositivePart) {
  const at::Tensor x = at::tensor({-2.0, -0.0, 0.5, 3.0});
  EXPECT_TRUE(at::equal(squared_relu(x), at::tensor({0.0, 0.0, 0.25, 9.0})));
}

TEST(LinearCrossEntropy, IsTheMeanNegativeLogProbability) {
  const at::Tensor x = random_tensor({7, 5}, 1), weight = random_tensor({11, 5}, 2);
  const at::Tensor targets = at::tensor({0, 3, 10, 10, 5, 1, 2}, at::kLong);
  double sum = 0;
  for (std::int64_t row = 0; row < 7; ++row) {
    double total = 0;
    for (std::int64_t word = 0; word < 11; ++word) total += std::exp((x[row] * weight[word]).sum().item<double>());
    sum += std::log(total) - (x[row] * weight[targets[row].item<std::int64_t>()]).sum().item<double>();
  }
  EXPECT_NEAR(linear_cross_entropy(x, weight, targets).item<double>(), sum / 7, 1e-13);
  EXPECT_NEAR(linear_cross_entropy(x, weight, targets, /*slice_bytes=*/100).item<double>(), sum / 7, 1e-13);
}

TEST(LinearCrossEntropy, SurvivesHugeLogits) {
  const at::Tensor x = at::full({2, 1}, 1e4f), weight = at::tensor({1.0f, -1.0f}).unsqueeze(1);
  EXPECT_EQ(linear_cross_entropy(x, weight, at::zeros({2}, at::kLong)).item<double>(), 0);
  EXPECT_EQ(linear_cross_entropy(x, weight, at::ones({2}, at::kLong)).item<double>(), 2e4);
}

TEST(Device, AnUnknownNameIsRefused) {
  test::expect_error(Fault::input, "unknown device 'tpu'; did you mean 'cpu'?", [] { choose_device("tpu"); });
}

TEST(Device, TheCpuComputesInFloat32) {
  const ComputeDevice device = choose_device("cpu");
  EXPECT_EQ(device.type, at::kFloat);
  EXPECT_GT(peak_memory_mb(device), 10);
}

}  // namespace
}  // namespace headscope
