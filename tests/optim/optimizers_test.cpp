#include "optim/optimizers.h"

#include <ATen/CPUGeneratorImpl.h>

#include "optim/muon.h"
#include "support/gradients.h"
#include "support/optimized_models.h"
#include "support/tensor_oracle.h"

namespace headscope {
namespace {

using test::largest_difference;
using test::random_tensor;
using test::TensorOracle;

class Optimizer : public ::testing::Test {
 protected:
  at::Tensor parameter(const std::string& name) const { return oracle.get(name + ".initial").set_requires_grad(true); }
  void give_gradient(at::Tensor& parameter, const std::string& name, std::int64_t step) const {
    parameter.mutable_grad() = oracle.get(name + ".gradients")[step];
  }
  TensorOracle oracle{"optimizers.safetensors"};
  std::int64_t steps = oracle.size("steps");
};

// float64 on both sides: only the order of sums differs, over ten steps of products of 96 terms.
constexpr double tolerance = 1e-11;

TEST_F(Optimizer, MuonAgreesWithNumpyOnAMergedMatrixAndBothOrientations) {
  at::Tensor qkv = parameter("merged.qkv"), output = parameter("merged.output"), up = parameter("up"),
             down = parameter("down");
  Muon muon({{"attention", {qkv, output}}, {"up", {up}}, {"down", {down}}}, {});
  for (std::int64_t step = 0; step < steps; ++step) {
    give_gradient(qkv, "merged.qkv", step);
    give_gradient(output, "merged.output", step);
    give_gradient(up, "up", step);
    give_gradient(down, "down", step);
    muon.step(oracle.number("muon_lr"));
    EXPECT_LT(largest_difference(qkv, oracle.get("merged.qkv.after")[step]), tolerance) << step;
    EXPECT_LT(largest_difference(output, oracle.get("merged.output.after")[step]), tolerance) << step;
    EXPECT_LT(largest_difference(up, oracle.get("up.after")[step]), tolerance) << step;
    EXPECT_LT(largest_difference(down, oracle.get("down.after")[step]), tolerance) << step;
  }
}

TEST_F(Optimizer, AdamWAgreesWithNumpy) {
  at::Tensor embedding = parameter("embedding"), gain = parameter("gain");
  AdamW adamw({{"embedding", embedding}, {"gain", gain}}, {});
  for (std::int64_t step = 0; step < steps; ++step) {
    give_gradient(embedding, "embedding", step);
    give_gradient(gain, "gain", step);
    adamw.step(oracle.number("adamw_lr"));
    EXPECT_LT(largest_difference(embedding, oracle.get("embedding.after")[step]), tolerance) << step;
    EXPECT_LT(largest_difference(gain, oracle.get("gain.after")[step]), tolerance) << step;
  }
}

TEST(PolarExpress, AgreesWithNumpyAndKeepsItsBound) {
  const TensorOracle oracle("polar.safetensors");
  const at::Tensor bound = oracle.get("bound");
  for (std::int64_t i = 0; i < oracle.size("cases"); ++i) {
    const at::Tensor output = polar_express(oracle.get(fmt::format("{}.input", i)).unsqueeze(0)).squeeze(0);
    // The iteration magnifies rounding: its first coefficient is 8, over five steps.
    EXPECT_LT(largest_difference(output, oracle.get(fmt::format("{}.output", i))), 1e-9) << i;
  }
  // Within the range that the method is made for, singular values end near 1: within [0.66, 1.2].
  EXPECT_GT(bound[0].item<double>(), 0.66);
  EXPECT_LT(bound[1].item<double>(), 1.2);
  const at::Tensor square = polar_express(random_tensor({1, 32, 96}, 1, at::kFloat));
  const at::Tensor values = at::linalg_svdvals(square);
  EXPECT_GT(values.min().item<double>(), bound[0].item<double>() - 1e-3);
  EXPECT_LT(values.max().item<double>(), bound[1].item<double>() + 1e-3);
}

TEST(PolarExpress, ABatchIsItsMatricesOneByOne) {
  const at::Tensor batch = random_tensor({3, 8, 20}, 1);
  const at::Tensor together = polar_express(batch);
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_LT(largest_difference(together[i], polar_express(batch[i].unsqueeze(0))[0]), 1e-12);
}

TEST(Schedule, WarmsUpThenStaysOrFallsAsACosine) {
  ScheduleOptions options{Schedule::constant, 4, 0.1};
  EXPECT_DOUBLE_EQ(learning_rate_factor(options, 0, 100), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate_factor(options, 3, 100), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(options, 99, 100), 1);
  options.kind = Schedule::cosine;
  EXPECT_DOUBLE_EQ(learning_rate_factor(options, 4, 105), 1);
  EXPECT_DOUBLE_EQ(learning_rate_factor(options, 54, 105), 0.55);  // half-way: the mean of 1 and 0.1
  EXPECT_DOUBLE_EQ(learning_rate_factor(options, 104, 105), 0.1);
}

TEST(Optimizers, EveryTrainedParameterChangesAndFrozenOnesDoNot) {
  const Decoder model = make_decoder(DecoderConfig(), 1);
  for (const DecoderLayer& layer : model.layers) layer.k_gain.set_requires_grad(false);
  NamedTensors before;
  for_each_parameter(model, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    before.emplace_back(name, value.detach().clone());
    if (value.requires_grad()) at::Tensor(value).mutable_grad() = random_tensor(value.sizes(), 1, at::kFloat);
  });
  Optimizers(model, {}).step(1);
  std::size_t i = 0;
  for_each_parameter(model, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    EXPECT_EQ(at::equal(value, before[i++].second), !value.requires_grad()) << name;
  });
}

// Without gradients AdamW decays alone: (value - target) is multiplied by 1 - lr · rate in every step.
TEST(Decay, FollowsItsClosedFormForEachKindOfParameter) {
  OptimizerOptions options;
  options.adamw_lr = 0.05;
  options.adamw.weight_decay = 0.3;
  options.gain_decay.number = 0.7;
  options.embedding_decay.number = 0.1;
  options.gain_decay_target = 1;
  DecoderConfig config = test::optimized_configs()[0];
  config.tied_head = false;
  const Decoder model = test::optimized_model(config, /*fixed_gains=*/false, at::kCPU, at::kDouble);
  NamedTensors before;
  {
    const at::NoGradGuard no_gradients;
    for (const DecoderLayer& layer : model.layers) layer.k_gain.copy_(random_tensor(layer.k_gain.sizes(), 3));
  }
  for (const auto& [name, value] : test::trained(model)) {
    before.emplace_back(name, value.detach().clone());
    at::Tensor(value).mutable_grad() = at::zeros_like(value).detach();
  }
  Optimizers optimizers(model, options);
  constexpr int steps = 5;
  for (int step = 0; step < steps; ++step) optimizers.step(0.5);
  const auto left = [&](double rate) { return std::pow(1 - 0.05 * 0.5 * rate, steps); };
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& [name, start] = before[i];
    const at::Tensor now = test::trained(model)[i].second.detach();
    const bool is_qk = name.ends_with("q_norm.gain") || name.ends_with("k_norm.gain");
    const bool is_embedding = name == "embedding.weight" || name == "head.weight";
    const bool is_matrix = name.starts_with("layers.") && name.ends_with(".weight");
    const at::Tensor expected = is_matrix      ? start
                                : is_qk        ? 1 + (start - 1) * left(0.7)
                                : is_embedding ? start * left(0.1)
                                               : start * left(0.3);
    EXPECT_LT(largest_difference(now, expected), 1e-14) << name;
  }
}

// The step of Adam does not depend on the value. So a run without decay gives the steps, and decay is added by hand.
TEST(Decay, IsApartFromTheGradient) {
  const double lr = 0.01;
  at::Tensor plain = random_tensor({7}, 1).set_requires_grad(true), decayed = plain.detach().clone();
  decayed.set_requires_grad(true);
  AdamW without({{"a", plain}}, {.weight_decay = 0}), with({{"a", decayed}}, {}, {{.rate = 3, .target = 1}});
  at::Tensor expected = decayed.detach().clone();
  for (std::uint64_t step = 0; step < 4; ++step) {
    const at::Tensor gradient = random_tensor({7}, 10 + step), before = plain.detach().clone();
    plain.mutable_grad() = gradient.clone();
    decayed.mutable_grad() = gradient.clone();
    without.step(lr);
    with.step(lr);
    expected = expected - lr * 3 * (expected - 1) + (plain.detach() - before);
    EXPECT_LT(largest_difference(decayed.detach(), expected), 1e-14) << step;
  }
}

}  // namespace
}  // namespace headscope
