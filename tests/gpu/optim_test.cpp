// Updates that stay on the GPU against the optimizers of the CPU in float64.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include "model/load.h"
#include "ops/device.h"
#include "optim/optimizers.h"
#include "support/gradients.h"
#include "support/optimized_models.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace gpu_optim {

using test::optimized_model;
using test::random_gradient;
using test::random_tensor;
using test::trained;

at::Device device() {
  static const at::Device chosen = choose_device("cuda").device;
  return chosen;
}

double error_of(const at::Tensor& actual, const at::Tensor& exact) {
  const at::Tensor wide = actual.detach().to(at::kCPU, at::kDouble);
  return ((wide - exact.detach()).norm() / exact.detach().norm()).item<double>();
}

// The input is rounded to bfloat16, 2^-9 of a value, what follows to half precision, 2^-12. Polar Express magnifies
// those in directions whose singular values are small.
constexpr double polar_tolerance = 2e-2;
// float32: a few roundings of 2^-24.
constexpr double f32_tolerance = 1e-6;

// Large enough for products by blocks.
DecoderConfig large_config() {
  DecoderConfig config = test::optimized_configs()[0];
  config.d_model = 1024;
  config.heads = 4;
  config.kv_heads = 2;
  config.d_k = 64;
  config.d_ff = 1500;
  return config;
}

std::vector<DecoderConfig> configs() {
  std::vector<DecoderConfig> all = test::optimized_configs();
  all.push_back(large_config());
  return all;
}

// A tensor that begins 4 bytes (2 in bfloat16) behind a place that 16 divides.
at::Tensor off_by_one(const at::Tensor& value) {
  const at::Tensor memory = at::empty({value.numel() + 1}, value.options().requires_grad(false));
  const at::Tensor moved = memory.narrow(0, 1, value.numel()).view(value.sizes());
  moved.copy_(value.detach());
  return moved.set_requires_grad(value.requires_grad());
}

// A model on the GPU with its optimizers, copies and numbers.
struct OnGpu {
  explicit OnGpu(const DecoderConfig& config, bool fixed_gains = false, bool unaligned = false,
                 const OptimizerOptions& options = {})
      : model(moved(optimized_model(config, fixed_gains, device(), at::kFloat), unaligned)),
        optimizers(model, options) {
    optimizers.keep_gradients();
    for (const auto& [name, value] : trained(model)) {
      const at::Tensor copy = at::empty(value.sizes(), value.options().dtype(at::kBFloat16).requires_grad(false));
      copies.emplace_back(name, unaligned ? off_by_one(copy) : copy);
    }
    optimizers.keep_copies(copies);
    const auto number = at::TensorOptions(device()).dtype(at::kFloat);
    update = {at::ones({}, number), at::ones({}, number), at::zeros({}, number), at::ones({}, number.dtype(at::kInt))};
  }

  static Decoder moved(Decoder model, bool unaligned) {
    if (unaligned)
      for_each_parameter(model,
                         [](const std::string&, ParameterKind, at::Tensor& value) { value = off_by_one(value); });
    return model;
  }

  void give_gradients(std::int64_t step, double size) const {
    const at::NoGradGuard no_gradients;
    const NamedTensors parameters = trained(model);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      parameters[i].second.grad().copy_(random_gradient(parameters[i].second, i, step, size));
  }

  // Everything that an update may change but the gradients.
  NamedTensors everything() const {
    NamedTensors all;
    for (const NamedTensors& some : {trained(model), optimizers.state(), copies})
      for (const auto& [name, value] : some) all.emplace_back(name, value.detach().clone());
    return all;
  }

  Decoder model;
  Optimizers optimizers;
  NamedTensors copies;
  DeviceUpdate update;
};

void expect_equal(const NamedTensors& actual, const NamedTensors& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(at::equal(actual[i].second, expected[i].second)) << expected[i].first;
}

void expect_updates(const DecoderConfig& config, bool fixed_gains, bool unaligned,
                    const OptimizerOptions& options = {}) {
  SCOPED_TRACE(::testing::Message() << "d_model " << config.d_model << ", unaligned " << unaligned);
  OnGpu gpu(config, fixed_gains, unaligned, options);
  const Decoder exact = optimized_model(config, fixed_gains, at::kCPU, at::kDouble);
  Optimizers expected(exact, options);
  const NamedTensors parameters = trained(gpu.model), exact_parameters = trained(exact);
  std::vector<at::Tensor> exact_values;
  for (const auto& [name, value] : exact_parameters) exact_values.push_back(value);

  for (std::int64_t step = 0; step < 3; ++step) {
    const double size = step == 1 ? 1e-5 : 1, lr_factor = 0.5 + 0.25 * static_cast<double>(step);
    std::vector<at::Tensor> before, exact_before;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      before.push_back(parameters[i].second.detach().to(at::kCPU, at::kDouble));
      exact_before.push_back(exact_values[i].detach().clone());
      exact_values[i].mutable_grad() = random_gradient(exact_values[i], i, step, size).to(at::kDouble);
    }
    gpu.give_gradients(step, size);
    gpu.update.lr_factor.fill_(lr_factor);
    gpu.optimizers.step(gpu.update, 1);
    const double norm = test::clip_gradients(exact_values, 1);
    expected.step(lr_factor);
    EXPECT_NEAR(gpu.update.grad_norm.item<double>(), norm, f32_tolerance * norm);
    EXPECT_EQ(norm > 1, step != 1);
    EXPECT_EQ(gpu.update.sound.item<int>(), 1);

    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto& [name, value] = parameters[i];
      SCOPED_TRACE(name);
      EXPECT_TRUE(at::equal(gpu.copies[i].second, value.detach().to(at::kBFloat16)));
      const bool is_matrix = name.starts_with("layers.") && name.ends_with(".weight");
      if (is_matrix)
        EXPECT_LT(error_of(value.detach().cpu().to(at::kDouble) - before[i], exact_values[i] - exact_before[i]),
                  polar_tolerance);
      else
        EXPECT_LT(error_of(value, exact_values[i]), f32_tolerance);
    }
    const NamedTensors state = gpu.optimizers.state(), exact_state = expected.state();
    ASSERT_EQ(state.size(), exact_state.size());
    for (const auto& [name, value] : exact_state) {
      const auto own = std::ranges::find(state, name, &NamedTensors::value_type::first);
      ASSERT_NE(own, state.end()) << name;
      ASSERT_EQ(own->second.sizes(), value.sizes()) << name;
      EXPECT_LT(error_of(own->second, value.to(at::kDouble)), f32_tolerance) << name;
    }
  }
}

TEST(GpuOptim, ThreeUpdatesAreThoseOfTheCpu) {
  for (const DecoderConfig& config : configs()) expect_updates(config, false, false);
  expect_updates(test::optimized_configs()[0], true, false);
  expect_updates(test::optimized_configs()[0], false, true);
  expect_updates(test::optimized_configs()[1], false, true);
}

TEST(GpuOptim, EveryParameterHasItsOwnDecay) {
  for (const DecoderConfig& config : configs()) expect_updates(config, false, false, test::decay_options());
}

// Without gradients only decay is left: (value - target) is multiplied by 1 - lr · rate in every update.
TEST(GpuOptim, DecayFollowsItsClosedForm) {
  for (const DecoderConfig& config : configs()) {
    const OptimizerOptions options = test::decay_options();
    OnGpu gpu(config, false, false, options);
    const NamedTensors parameters = trained(gpu.model);
    std::vector<at::Tensor> before;
    {
      const at::NoGradGuard no_gradients;
      for (const DecoderLayer& layer : gpu.model.layers)
        if (layer.k_gain.defined()) layer.k_gain.fill_(0.25);
      for (const auto& [name, value] : parameters) before.push_back(value.detach().to(at::kCPU, at::kDouble));
    }
    gpu.give_gradients(0, 0);
    constexpr int updates = 4;
    for (int i = 0; i < updates; ++i) gpu.optimizers.step(gpu.update, 1);
    const auto left = [&](double rate) { return std::pow(1 - options.adamw_lr * rate, updates); };
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto& [name, value] = parameters[i];
      if (name.starts_with("layers.") && name.ends_with(".weight")) continue;  // Muon has no decay
      const bool is_qk = name.ends_with("q_norm.gain") || name.ends_with("k_norm.gain");
      const bool is_embedding = name == "embedding.weight" || name == "head.weight";
      const at::Tensor expected = is_qk ? 1 + (before[i] - 1) * left(5) : before[i] * left(is_embedding ? 0.05 : 0.2);
      const double largest = (value.detach().to(at::kCPU, at::kDouble) - expected).abs().max().item<double>();
      EXPECT_LT(largest, f32_tolerance * std::max(1.0, expected.abs().max().item<double>())) << name;
    }
  }
}

TEST(GpuOptim, NothingChangesFromTheFirstUpdateOnThatIsNotFinite) {
  for (const bool is_loss : {false, true}) {
    OnGpu gpu(test::optimized_configs()[0]);
    gpu.give_gradients(0, 1);
    gpu.optimizers.step(gpu.update, 1);
    const NamedTensors before = gpu.everything();
    gpu.give_gradients(1, 1);
    if (is_loss)
      gpu.update.loss.fill_(INFINITY);
    else
      gpu.model.layers[1].down.weight.grad()[3][4].fill_(NAN);
    const at::Tensor gradient = gpu.model.layers[0].qkv.weight.grad(), kept = gradient.clone();
    gpu.optimizers.step(gpu.update, 1);
    EXPECT_EQ(gpu.update.sound.item<int>(), 0);
    EXPECT_EQ(std::isfinite(gpu.update.grad_norm.item<double>()), is_loss);
    EXPECT_TRUE(at::equal(gradient, kept));
    gpu.update.loss.fill_(1);
    for (const auto& [name, value] : trained(gpu.model)) value.grad().fill_(1e-3);
    gpu.optimizers.step(gpu.update, 1);
    EXPECT_EQ(gpu.update.sound.item<int>(), 0);
    expect_equal(gpu.everything(), before);
  }
}

TEST(GpuOptim, MatricesWithoutAGradientStay) {
  OnGpu gpu(test::optimized_configs()[0]);
  const at::Tensor before = gpu.model.layers[0].up.weight.detach().clone();
  gpu.model.embedding.grad().fill_(0.1);
  gpu.optimizers.step(gpu.update, 1);
  EXPECT_EQ(gpu.update.sound.item<int>(), 1);
  EXPECT_TRUE(at::equal(gpu.model.layers[0].up.weight, before));
}

TEST(GpuOptim, StateIsThatOfACheckpoint) {
  const test::TemporaryFolder folder;
  OnGpu gpu(test::optimized_configs()[0]), other(test::optimized_configs()[0]);
  for (std::int64_t step = 0; step < 2; ++step) {
    gpu.give_gradients(step, 1);
    gpu.optimizers.step(gpu.update, 1);
  }
  const NamedTensors state = gpu.optimizers.state();
  save_tensors(folder.path() / "optimizer.safetensors", state);
  const Safetensors file(folder.path() / "optimizer.safetensors");
  for (const auto& [name, value] : other.optimizers.state()) load_tensor(file.get(name), value, "test");
  expect_equal(other.optimizers.state(), state);
  // The same from here on.
  const NamedTensors parameters = trained(gpu.model), others = trained(other.model);
  {
    const at::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < parameters.size(); ++i) others[i].second.copy_(parameters[i].second);
  }
  other.optimizers.keep_copies(other.copies);
  for (OnGpu* each : {&gpu, &other}) {
    each->give_gradients(2, 1);
    each->optimizers.step(each->update, 1);
  }
  expect_equal(other.everything(), gpu.everything());
}

TEST(GpuOptim, ACudaGraphIsTheSameBitForBit) {
  for (const DecoderConfig& config : configs()) {
    c10::cuda::device_synchronize();
    const auto stream = c10::cuda::getStreamFromPool(false, device().index());
    const c10::cuda::CUDAStreamGuard guard(stream);
    OnGpu eager(config), replayed(config);
    const NamedTensors before = replayed.everything();
    {  // libraries make their handles before a capture
      OnGpu warm(config);
      warm.give_gradients(0, 1);
      warm.optimizers.step(warm.update, 1);
    }
    c10::cuda::device_synchronize();
    at::cuda::CUDAGraph graph;
    graph.capture_begin();
    replayed.optimizers.step(replayed.update, 1);
    graph.capture_end();
    expect_equal(replayed.everything(), before);
    for (std::int64_t step = 0; step < 3; ++step) {
      for (const OnGpu* each : {&eager, &replayed}) {
        each->give_gradients(step, step == 1 ? 1e-5 : 1);
        each->update.lr_factor.fill_(1.0 / static_cast<double>(step + 1));
      }
      eager.optimizers.step(eager.update, 1);
      graph.replay();
      expect_equal(replayed.everything(), eager.everything());
      EXPECT_TRUE(at::equal(replayed.update.grad_norm, eager.update.grad_norm));
    }
    c10::cuda::device_synchronize();
  }
}

TEST(GpuOptim, PolarExpressByBlocks) {
  for (const std::int64_t n : {30, 64, 100, 200, 512, 1024}) {
    const std::vector<at::Tensor> inputs = {random_tensor({3, 2 * n + 7, n}, 1, at::kBFloat16),
                                            random_tensor({2, n, 3 * n}, 2, at::kBFloat16),
                                            random_tensor({1, n, n + n / 2}, 3, at::kBFloat16)};
    std::vector<at::Tensor> exact;
    for (const at::Tensor& group : inputs) exact.push_back(polar_express(group.to(at::kDouble)));
    for (const std::int64_t blocks : {0, 1, 2, 4}) {
      std::vector<at::Tensor> x, spare;
      for (const at::Tensor& group : inputs) {
        x.push_back((with_norm_below_one(group.to(at::kDouble)) * raised).to(device(), at::kHalf));
        spare.push_back(at::empty_like(x.back()));
      }
      const auto result = polar_express(x, spare, blocks);
      for (std::size_t i = 0; i < result.size(); ++i)
        EXPECT_LT(error_of(result[i], exact[i]), polar_tolerance) << n << ", " << blocks << " blocks, group " << i;
    }
  }
}

}  // namespace gpu_optim
}  // namespace headscope
