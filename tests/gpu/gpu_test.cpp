// What runs on a GPU against the same on the CPU in float64. scripts/test-gpu runs it on a machine that has one.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gmock/gmock.h>

#include "experiments/benchmark.h"
#include "model/decoder.h"
#include "ops/attention.h"
#include "ops/device.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"
#include "ops/squared_relu.h"
#include "optim/muon.h"
#include "probe/attention_statistics.h"
#include "probe/key_statistics.h"
#include "probe/probe.h"
#include "support/gradients.h"

namespace headscope {
namespace {

using test::random_tensor;

const ComputeDevice& gpu() {
  static const ComputeDevice device = choose_device("cuda");
  return device;
}

double relative_error(const at::Tensor& actual, const at::Tensor& exact) {
  const at::Tensor wide = actual.detach().to(at::kCPU, at::kDouble);
  return ((wide - exact.detach()).norm() / exact.detach().norm()).item<double>();
}

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

using Tolerance = std::function<double(std::string_view metric, double value)>;

void expect_values(const HeadValues& actual, const HeadValues& exact, const Tolerance& tolerance) {
  ASSERT_EQ(actual.size(), exact.size());
  for (const auto& [metric, values] : exact) {
    ASSERT_EQ(actual.at(metric).size(), values.size()) << metric;
    for (std::size_t head = 0; head < values.size(); ++head) {
      const double value = actual.at(metric)[head];
      if (std::isnan(values[head]))
        EXPECT_TRUE(std::isnan(value)) << metric << " of head " << head << ": " << value;
      else
        EXPECT_NEAR(value, values[head], tolerance(metric, values[head])) << metric << " of head " << head;
    }
  }
}

struct AttentionCase {
  std::int64_t b, t, heads, key_heads, d;
  double factor = 1;  // of the queries: large ones make large scores
};

void expect_attention(const at::Tensor& q, const at::Tensor& k) {
  SCOPED_TRACE(::testing::Message() << q.sizes() << k.sizes() << q.scalar_type());
  const auto d = static_cast<double>(q.size(3)), scale = 1 / std::sqrt(d), t = static_cast<double>(q.size(1));
  const at::Tensor exact_q = q.to(at::kDouble), exact_k = k.to(at::kDouble);
  const HeadValues exact = attention_statistics_composed(exact_q, exact_k, {.scale = scale});
  // A score is a sum of d products in float32. Tensor cores add 8 or more at a time and cut off what is below the last
  // place of the largest; no partial sum exceeds |q|·|k|.
  const double largest = scale * (exact_q.norm(2, -1).max() * exact_k.norm(2, -1).max()).item<double>();
  const double error = (d / 8 + 2) * 0x1p-23 * largest;
  expect_values(attention_statistics(q, k, {.scale = scale}), exact, [&](std::string_view metric, double) {
    // Scores off by at most e change p by 2e·p and an entropy by 2e·H <= 2e·ln t; consistency takes two entropies.
    // 1e-5: exp to 2 + 1.2|x| units in the last place, and sums in float32.
    return metric == "max_logit" ? error + 1e-6 : 1e-5 + 4 * error * std::max(1.0, std::log(t));
  });
}

TEST(Gpu, AttentionStatisticsAreTheDefinitions) {
  const std::vector<AttentionCase> cases = {
      {8, 256, 8, 4, 64}, {3, 200, 4, 4, 32},     {2, 129, 6, 2, 128},     {1, 130, 2, 1, 64},
      {4, 1, 2, 2, 64},   {2, 2, 2, 1, 16},       {2, 64, 2, 2, 48},       {5, 65, 3, 1, 80},
      {2, 63, 1, 1, 112}, {4, 300, 4, 2, 64, 30}, {2, 190, 2, 2, 128, 30}, {9, 1000, 2, 1, 64, 3},
  };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const auto& [b, t, heads, key_heads, d, factor] : cases) {
      const at::Tensor q = (random_tensor({b, t, heads, d}, 1) * factor).to(gpu().device, type);
      const at::Tensor k = random_tensor({b, t, key_heads, d}, 2).to(gpu().device, type);
      expect_attention(q, k);
    }
    // Slices, not contiguous and not at the beginning; keys that are zero; all sequences the same.
    const at::Tensor both = random_tensor({3, 150, 7, 64}, 3).to(gpu().device, type);
    expect_attention(both.narrow(2, 1, 4), both.narrow(2, 5, 2));
    const at::Tensor zero = random_tensor({2, 100, 2, 64}, 4).to(gpu().device, type);
    zero.narrow(1, 10, 50).zero_();
    expect_attention(both.narrow(0, 0, 2).narrow(1, 0, 100).narrow(2, 0, 4), zero);
    expect_attention(zero.narrow(0, 0, 1).expand({4, -1, -1, -1}), zero.narrow(0, 1, 1).expand({4, -1, -1, -1}));
  }
}

TEST(Gpu, AttentionStatisticsShowNotANumber) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor q = random_tensor({2, 150, 2, 64}, 1).to(gpu().device, type);
    const at::Tensor k = random_tensor({2, 150, 2, 64}, 2).to(gpu().device, type);
    q.select(0, 1).select(0, 100).select(0, 1).fill_(std::numeric_limits<double>::quiet_NaN());
    const HeadValues values = attention_statistics(q, k, {.scale = 0.125});
    for (const char* metric :
         {"entropy", "entropy_norm", "max_logit", "sink", "previous", "self", "constancy", "consistency"}) {
      EXPECT_FALSE(std::isnan(values.at(metric)[0])) << metric;
      EXPECT_TRUE(std::isnan(values.at(metric)[1])) << metric;
    }
  }
}

void expect_keys(const at::Tensor& k) {
  SCOPED_TRACE(::testing::Message() << k.sizes() << k.scalar_type());
  // Both in float64 in another order; deviations lose the digits that mean and deviation share.
  expect_values(key_statistics(k), key_statistics_composed(k), [](std::string_view metric, double value) {
    return metric == "k_top_dim" ? 0.0 : 1e-10 * std::max(1.0, std::abs(value));
  });
}

TEST(Gpu, KeyStatisticsAreTheDefinitions) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t d : {16, 32, 48, 64, 128})
      for (const auto& [b, t] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 7}, {3, 100}, {8, 513}})
        expect_keys(random_tensor({b, t, 3, d}, 1).to(gpu().device, type));
    const at::Tensor k = random_tensor({2, 90, 6, 64}, 2).to(gpu().device, type);
    expect_keys(k.narrow(2, 1, 3));
    k.narrow(1, 0, 20).zero_();  // the first among them
    expect_keys(k);
    k.select(2, 1).zero_();  // a head without keys
    k.select(2, 2).narrow(1, 0, 60).zero_();
    expect_keys(k);
    k.select(2, 3).fill_(1.5);  // all the same
    const HeadValues values = key_statistics(k);
    for (const char* metric : {"k_norm_std", "k_std"}) EXPECT_EQ(values.at(metric)[3], 0) << metric;
    EXPECT_NEAR(values.at("k_norm")[3], 12, 1e-12);
    EXPECT_NEAR(values.at("k_cosine")[3], 1, 1e-12);
  }
}

TEST(Gpu, LossAndMeasurementsAgreeWithTheCpu) {
  DecoderConfig config;
  const at::Tensor tokens = at::randint(config.vocabulary, {8, 256}, at::kLong);
  const Batch here{tokens, tokens.roll(1)}, there{tokens.to(gpu().device), tokens.roll(1).to(gpu().device)};
  const MetricSelection all("all", "test");
  const ProbeResult cpu = probe_model(make_decoder(config, 3), {here}, at::kFloat, all, true);
  const ProbeResult on_gpu = probe_model(make_decoder(config, 3, gpu().device), {there}, gpu().type, all, true);
  EXPECT_NEAR(*on_gpu.val_loss, *cpu.val_loss, 0.02);
  for (std::size_t layer = 0; layer < cpu.layers.size(); ++layer) {
    for (const auto& [metric, values] : cpu.layers[layer]) {
      if (metric.starts_with("k_top")) continue;                // two dimensions may be as good as equal
      for (std::size_t head = 0; head < values.size(); ++head)  // TF32 is off: float32 sums in another order
        EXPECT_NEAR(on_gpu.layers[layer].at(metric)[head], values[head], 1e-3 * std::max(1.0, std::abs(values[head])))
            << metric;
    }
  }
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
