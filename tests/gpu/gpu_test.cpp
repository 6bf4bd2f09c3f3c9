// What runs on a GPU against the same on the CPU in float64. scripts/test-gpu runs it on a machine that has one.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gmock/gmock.h>

#include "experiments/benchmark.h"
#include "experiments/device_facts.h"
#include "experiments/estimate.h"
#include "gpu/support.h"
#include "ops/attention.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"
#include "ops/squared_relu.h"
#include "optim/muon.h"
#include "support/gradients.h"

namespace headscope {
namespace {

using test::gpu;
using test::random_tensor;
using test::relative_error;

using Operation = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// Output and gradients on the GPU in `type` against the CPU in float64 on the same (rounded) inputs.
void expect_same(const std::vector<at::Tensor>& inputs, at::ScalarType type, double tolerance,
                 const Operation& operation) {
  std::vector<at::Tensor> on_gpu, exact;
  for (const at::Tensor& input : inputs) {
    on_gpu.push_back(input.to(gpu().device, type).set_requires_grad(true));
    exact.push_back(on_gpu.back().detach().to(at::kCPU, at::kDouble).set_requires_grad(true));
  }
  const at::Tensor y = operation(on_gpu), y_exact = operation(exact);
  EXPECT_LT(relative_error(y, y_exact), tolerance);
  const at::Tensor upstream = random_tensor(y.sizes(), 99).to(type);
  const auto gradients = torch::autograd::grad({y}, on_gpu, {upstream.to(gpu().device)});
  const auto exact_gradients = torch::autograd::grad({y_exact}, exact, {upstream.to(at::kDouble)});
  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_LT(relative_error(gradients[i], exact_gradients[i]), tolerance) << "input " << i;
}

// bfloat16 keeps 8 bits: one rounding is 2^-9 on average, a few operations stay below 1e-2.
constexpr double bf16_tolerance = 1e-2, f32_tolerance = 1e-5;

TEST(Gpu, SquaredRelu) {
  for (const std::int64_t count : {1, 7, 8, 1000, 4096 * 33 + 5}) {
    expect_same({random_tensor({count}, 1)}, at::kFloat, f32_tolerance,
                [](const auto& x) { return squared_relu(x[0]); });
    expect_same({random_tensor({count}, 2)}, at::kBFloat16, bf16_tolerance,
                [](const auto& x) { return squared_relu(x[0]); });
  }
}

// Gains stay float32, as in training, where the CPU's are float64.
at::Tensor as_gain(const at::Tensor& gain) {
  return gain.to(gain.is_cuda() ? at::kFloat : at::kDouble);
}

TEST(Gpu, RmsNorm) {
  for (const std::int64_t d : {32, 64, 128, 256, 512, 1024, 2048, 48}) {  // the last has no kernel
    expect_same({random_tensor({3001, d}, 1), random_tensor({d}, 2)}, at::kFloat, f32_tolerance,
                [](const auto& x) { return rms_norm(x[0], as_gain(x[1]), 1e-7); });
    expect_same({random_tensor({77, d}, 1), random_tensor({d}, 2)}, at::kBFloat16, bf16_tolerance,
                [](const auto& x) { return rms_norm(x[0], as_gain(x[1]), 1e-7); });
  }
}

TEST(Gpu, RmsNormOfASliceOfHeadsWithAGainForEach) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const double tolerance = type == at::kFloat ? f32_tolerance : bf16_tolerance;
    expect_same({random_tensor({4, 333, 16, 64}, 1), random_tensor({12, 64}, 2)}, type, tolerance,
                [](const auto& x) { return rms_norm(x[0].narrow(2, 0, 12), as_gain(x[1]), 1e-7); });
    expect_same({random_tensor({4, 33, 16, 64}, 1)}, type, tolerance,
                [](const auto& x) { return rms_norm(x[0].narrow(2, 3, 5), {}, 1e-7); });
    expect_same({random_tensor({16, 33, 64}, 1)}, type, tolerance,
                [](const auto& x) { return rms_norm(x[0].transpose(0, 1), {}, 1e-7); });
  }
}

TEST(Gpu, Rotary) {
  expect_same({random_tensor({2, 128, 4, 64}, 1)}, at::kBFloat16, bf16_tolerance, [](const auto& x) {
    const auto type = x[0].scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    return rotate(x[0], rotary_table(128, 64, 10000, type).to(x[0].device()));
  });
}

TEST(Gpu, AttentionIsCudnnsWithGroupedQueries) {
  gpu();
  const std::vector<at::Tensor> qkv = {random_tensor({2, 256, 8, 64}, 1), random_tensor({2, 256, 4, 64}, 2),
                                       random_tensor({2, 256, 4, 64}, 3)};
  expect_same(qkv, at::kBFloat16, 2 * bf16_tolerance,
              [](const auto& x) { return causal_attention(x[0], x[1], x[2], {.scale = 0.125}); });
  std::vector<at::Tensor> on_gpu;
  for (const at::Tensor& x : qkv) on_gpu.push_back(x.to(gpu().device, at::kBFloat16).set_requires_grad(true));
  const at::Tensor y = causal_attention(on_gpu[0], on_gpu[1], on_gpu[2], {.scale = 0.125});
  EXPECT_THAT(y.grad_fn()->next_edge(0).function->name(), ::testing::HasSubstr("Cudnn"));
}

TEST(Gpu, AttentionWithGroupsInFloat32AndWithWindows) {
  const std::vector<at::Tensor> qkv = {random_tensor({2, 1300, 6, 64}, 1), random_tensor({2, 1300, 2, 64}, 2),
                                       random_tensor({2, 1300, 2, 64}, 3)};
  for (const std::int64_t window : {0, 100, 1200}) {
    const auto attend = [&](const auto& x) {
      return causal_attention(x[0], x[1], x[2], {.scale = 0.125, .window = window});
    };
    expect_same(qkv, at::kFloat, 10 * f32_tolerance, attend);
    expect_same(qkv, at::kBFloat16, 2 * bf16_tolerance, attend);
  }
}

TEST(Gpu, LinearCrossEntropy) {
  const at::Tensor targets = at::arange(100) % 1000;
  expect_same(
      {random_tensor({100, 64}, 1), random_tensor({1000, 64}, 2)}, at::kBFloat16, bf16_tolerance,
      [&](const auto& x) { return linear_cross_entropy(x[0], x[1], targets.to(x[0].device()), 64 * 1000 * 4); });
}

TEST(Gpu, PolarExpressIsNearlyOrthogonal) {
  const at::Tensor y = polar_express(random_tensor({6, 64, 256}, 1, at::kFloat).to(gpu().device));
  const at::Tensor values = at::linalg_svdvals(y.cpu().to(at::kFloat));
  EXPECT_GT(values.min().item<double>(), 0.8);
  EXPECT_LT(values.max().item<double>(), 1.2);
}

TEST(Gpu, AnEstimateKnowsItsMemory) {
  const TrainEstimate estimate = estimate_training(headscope::Setup{}, gpu());
  ASSERT_TRUE(estimate.gpu_memory_mb);
  EXPECT_GT(*estimate.gpu_memory_mb, estimate.memory_mb);  // of the preset tiny
}

TEST(Gpu, TheManifestNamesItsLibraries) {
  const nlohmann::ordered_json facts = device_facts(gpu());
  EXPECT_EQ(facts["gpu"]["name"], gpu().description);
  for (const char* version : {"driver", "cuda", "cudnn"}) EXPECT_TRUE(facts["gpu"][version].is_string()) << version;
}

TEST(Gpu, TrainingLowersTheLoss) {
  headscope::Setup setup;
  setup.device = "cuda";
  setup.train.tokens = setup.train.tokens_per_step() * 30;
  const TrainBenchmark result = benchmark_training(setup, 0, 30);
  EXPECT_NEAR(result.loss_first, std::log(258), 0.15);
  EXPECT_LT(result.loss_last, result.loss_first);
  EXPECT_GT(result.peak_memory_mb, 1);
}

}  // namespace
}  // namespace headscope
