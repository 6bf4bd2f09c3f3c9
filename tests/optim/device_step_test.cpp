#include "optim/device_step.h"

#include <ATen/CPUGeneratorImpl.h>

#include "model/load.h"
#include "optim/optimizers.h"
#include "support/gradients.h"
#include "support/optimized_models.h"
#include "support/tensor_oracle.h"

namespace headscope {
namespace {

using test::largest_difference;
using test::optimized_model;
using test::random_gradient;
using test::random_tensor;
using test::trained;

DeviceUpdate make_update(double lr_factor, double loss = 1) {
  return {at::full({}, lr_factor, at::kFloat), at::full({}, loss, at::kFloat), at::zeros({}, at::kFloat),
          at::ones({}, at::kInt)};
}

void expect_close(const NamedTensors& actual, const NamedTensors& expected, double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, value] : expected) {
    const auto found = std::ranges::find(actual, name, &NamedTensors::value_type::first);
    ASSERT_NE(found, actual.end()) << name;
    ASSERT_EQ(found->second.sizes(), value.sizes()) << name;
    EXPECT_LT(largest_difference(found->second, value), tolerance) << name;
  }
}

TEST(DeviceStep, IsTheUpdateOfTheOptimizers) {
  for (const DecoderConfig& config : test::optimized_configs()) {
    for (const bool fixed_gains : {false, true}) {
      const Decoder model = optimized_model(config, fixed_gains, at::kCPU, at::kDouble);
      const Decoder other = optimized_model(config, fixed_gains, at::kCPU, at::kDouble);
      const OptimizerOptions options = fixed_gains ? OptimizerOptions() : test::decay_options();
      Optimizers optimizers(model, options), expected(other, options);
      optimizers.keep_gradients();
      const NamedTensors parameters = trained(model), others = trained(other);
      for (std::int64_t step = 0; step < 3; ++step) {
        const double size = step == 1 ? 1e-4 : 1;  // the second is not clipped
        for (std::size_t i = 0; i < parameters.size(); ++i) {
          const at::Tensor gradient = random_gradient(parameters[i].second, i, step, size).to(at::kDouble);
          parameters[i].second.grad().copy_(gradient);
          at::Tensor(others[i].second).mutable_grad() = gradient.clone();
        }
        const DeviceUpdate update = make_update(0.5);
        optimizers.step(update, 1);
        const double norm = test::clip_gradients(test::values_of(others), 1);
        expected.step(0.5);
        EXPECT_NEAR(update.grad_norm.item<double>(), norm, 1e-6 * norm);
        // float64: sums in another order, which five steps of Polar Express magnify.
        expect_close(parameters, others, 1e-10);
        expect_close(optimizers.state(), expected.state(), 1e-10);
      }
    }
  }
}

TEST(DeviceStep, MatricesOfOneShapeLieOneBehindTheOther) {
  const Decoder model = optimized_model(test::optimized_configs()[0], true, at::kCPU, at::kFloat);
  Optimizers optimizers(model, {});
  optimizers.keep_gradients();
  const auto place = [](const at::Tensor& parameter) { return parameter.grad().const_data_ptr<float>(); };
  for (const DecoderLayer& layer : model.layers)
    EXPECT_EQ(place(layer.output.weight), place(layer.qkv.weight) + layer.qkv.weight.numel());
  EXPECT_EQ(place(model.layers[1].qkv.weight), place(model.layers[0].output.weight) + 96 * 96);
  EXPECT_EQ(place(model.layers[1].up.weight), place(model.layers[0].up.weight) + 200 * 96);
  EXPECT_FALSE(model.layers[0].q_gain.grad().defined());
}

TEST(DeviceStep, CopiesAreTheRoundedParameters) {
  const Decoder model = optimized_model(test::optimized_configs()[1], false, at::kCPU, at::kFloat);
  Optimizers optimizers(model, {});
  optimizers.keep_gradients();
  NamedTensors copies;
  for (const auto& [name, value] : trained(model)) copies.emplace_back(name, at::empty(value.sizes(), at::kBFloat16));
  optimizers.keep_copies(copies);
  for (std::int64_t step = 0; step < 2; ++step) {
    const NamedTensors parameters = trained(model);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_TRUE(at::equal(copies[i].second, parameters[i].second.to(at::kBFloat16))) << parameters[i].first;
      parameters[i].second.grad().copy_(random_gradient(parameters[i].second, i, step, 1));
    }
    optimizers.step(make_update(1), 1);
  }
}

TEST(DeviceStep, NothingChangesFromTheFirstUpdateOnThatIsNotFinite) {
  for (const bool is_loss : {false, true}) {
    const Decoder model = optimized_model(test::optimized_configs()[0], false, at::kCPU, at::kFloat);
    Optimizers optimizers(model, {});
    optimizers.keep_gradients();
    NamedTensors before;
    for (const auto& [name, value] : trained(model)) before.emplace_back(name, value.detach().clone());
    DeviceUpdate update = make_update(1, is_loss ? std::nan("") : 1);
    at::Tensor gradient = model.layers[0].up.weight.grad();
    if (!is_loss) gradient[3][4] = std::nan("");
    optimizers.step(update, 1);
    EXPECT_EQ(update.sound.item<int>(), 0);
    update.loss.fill_(1);
    gradient.fill_(1);
    optimizers.step(update, 1);
    expect_close(trained(model), before, 1e-30);
    EXPECT_EQ(gradient.min().item<double>(), 1);
    for (const auto& [name, value] : optimizers.state()) EXPECT_EQ(value.abs().max().item<double>(), 0) << name;
  }
}

TEST(DeviceStep, TakesOverWhatTheOptimizersHad) {
  const DecoderConfig config = test::optimized_configs()[0];
  const Decoder model = optimized_model(config, false, at::kCPU, at::kDouble);
  Optimizers optimizers(model, {});
  const NamedTensors parameters = trained(model);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    at::Tensor(parameters[i].second).mutable_grad() = random_gradient(parameters[i].second, i, 0, 1).to(at::kDouble);
  optimizers.step(1);
  NamedTensors before;
  for (const auto& [name, value] : optimizers.state()) before.emplace_back(name, value.clone());
  optimizers.keep_gradients();
  expect_close(optimizers.state(), before, 1e-30);
}

TEST(PolarExpress, InGivenMemoryAndByBlocksIsTheSame) {
  for (const std::int64_t blocks : {0, 1, 2, 3, 4}) {
    const at::Tensor tall = random_tensor({3, 40, 12}, 1), wide = random_tensor({2, 12, 29}, 2),
                     square = random_tensor({1, 12, 12}, 3);
    std::vector<at::Tensor> x, spare;
    for (const at::Tensor& group : {tall, wide, square}) {
      x.push_back(with_norm_below_one(group) * raised);
      spare.push_back(at::empty_like(group));
    }
    const auto result = polar_express(x, spare, blocks);
    EXPECT_LT(largest_difference(result[0], polar_express(tall)), 1e-11) << blocks;
    EXPECT_LT(largest_difference(result[1], polar_express(wide)), 1e-11) << blocks;
    EXPECT_LT(largest_difference(result[2], polar_express(square)), 1e-11) << blocks;
  }
}

// As on a GPU, which takes half precision: 11 bits. Single steps in bfloat16, 8 bits, are the measure, from the same
// matrix, whose norm is taken in float64 for both.
TEST(PolarExpress, InHalfPrecisionIsNearerThanSingleStepsInBfloat16) {
  const auto [u, s, v] = at::linalg_svd(random_tensor({3, 30, 54}, 3), /*full_matrices=*/false);
  for (const double decades : {0.0, 1.0, 3.0, 6.0}) {
    const at::Tensor values =
        decades == 0 ? s : at::pow(10, at::linspace(0, -decades, 30, at::kDouble)).expand({3, 30});
    const at::Tensor x = with_norm_below_one(at::matmul(u * values.unsqueeze(1), v)).to(at::kBFloat16).to(at::kDouble);
    const at::Tensor exact = polar_express(x);
    const auto error = [&](const at::Tensor& y) { return ((y - exact).norm() / exact.norm()).item<double>(); };
    const at::Tensor scaled = (with_norm_below_one(x) * raised).to(at::kHalf);
    const double of_half = error(polar_express({scaled}, {at::empty_like(scaled)}, /*blocks=*/2)[0].to(at::kDouble));
    EXPECT_LT(of_half, error(polar_express(x.to(at::kBFloat16)).to(at::kDouble))) << decades;
    EXPECT_LT(of_half, 2e-2) << decades;
  }
}

}  // namespace
}  // namespace headscope
