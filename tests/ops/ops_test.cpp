// Each operation against its definition, written out in loops.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include "core/error.h"
#include "ops/attention.h"
#include "ops/device.h"
#include "ops/feed_forward_products.h"
#include "ops/gpu.h"
#include "ops/large_tensors.h"
#include "ops/linear.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"
#include "ops/silu_product.h"
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

TEST(Rotary, TurnsHalvesOfTheFirstDimensionsAndLeavesTheRest) {
  const std::int64_t d = 10, turning = 6;
  const at::Tensor x = random_tensor({1, 5, 2, d}, 1), frequencies = at::tensor({1.0, 0.3, 0.01}, at::kDouble);
  const at::Tensor y = rotate(x, rotary_table(5, frequencies, /*magnitude=*/1.5, at::kDouble), /*halves=*/true);
  for (std::int64_t t = 0; t < 5; ++t)
    for (std::int64_t i = 0; i < turning / 2; ++i) {
      const double angle = static_cast<double>(t) * frequencies[i].item<double>();
      const double a = x[0][t][1][i].item<double>(), b = x[0][t][1][i + 3].item<double>();
      EXPECT_NEAR(y[0][t][1][i].item<double>(), 1.5 * (a * std::cos(angle) - b * std::sin(angle)), 1e-14);
      EXPECT_NEAR(y[0][t][1][i + 3].item<double>(), 1.5 * (a * std::sin(angle) + b * std::cos(angle)), 1e-14);
    }
  EXPECT_TRUE(at::equal(y.narrow(-1, turning, d - turning), x.narrow(-1, turning, d - turning)));
}

TEST(Rotary, AnglesAreRoundedToTheTypeOfTheFrequencies) {
  const at::Tensor third = at::tensor({1.0 / 3}, at::kDouble);
  const auto angle = [](const at::Tensor& table) { return at::angle(table[3][0]).item<double>(); };
  EXPECT_NEAR(angle(rotary_table(4, third, 1, at::kDouble)), 1, 1e-15);
  const float single = 3.0F * (1.0F / 3);
  EXPECT_NEAR(angle(rotary_table(4, third.to(at::kFloat), 1, at::kDouble)), static_cast<double>(single), 1e-15);
}

// Every way to compute attention, against the definition in loops: whole sequences, a window, a soft-cap, both.
TEST(Attention, WindowsAndSoftCapsAreThoseOfTheDefinition) {
  const std::int64_t time = 9, heads = 4, kv_heads = 2, d = 4;
  const at::Tensor q = random_tensor({2, time, heads, d}, 1), k = random_tensor({2, time, kv_heads, d}, 2),
                   v = random_tensor({2, time, kv_heads, d}, 3);
  for (const Scores& scores : {Scores{0.9, 1, 0}, Scores{0.9, 4, 0}, Scores{0.9, 0, 0.7}, Scores{0.9, 3, 0.7},
                               Scores{0.9, time, 0}, Scores{0.9, 100, 0.7}}) {
    const at::Tensor out = causal_attention(q, k, v, scores);
    const at::Tensor rows = attention_probabilities(q, k, scores, /*first=*/5, /*count=*/3);
    ASSERT_EQ(rows.sizes(), at::IntArrayRef({2, heads, 3, time}));
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::int64_t t = 0; t < time; ++t) {
        const std::int64_t group = head / (heads / kv_heads);
        std::vector<double> weights(static_cast<std::size_t>(time), 0);
        double total = 0;
        for (std::int64_t s = 0; s <= t; ++s) {
          if (scores.window != 0 && t - s >= scores.window) continue;
          double score = scores.scale * (q[1][t][head] * k[1][s][group]).sum().item<double>();
          if (scores.cap != 0) score = scores.cap * std::tanh(score / scores.cap);
          total += weights[static_cast<std::size_t>(s)] = std::exp(score);
        }
        at::Tensor sum = at::zeros({d}, at::kDouble);
        for (std::int64_t s = 0; s < time; ++s) {
          const double share = weights[static_cast<std::size_t>(s)] / total;
          sum += share * v[1][s][group];
          if (t >= 5 && t < 8) {
            EXPECT_NEAR(rows[1][head][t - 5][s].item<double>(), share, 1e-13);
          }
        }
        EXPECT_LT((out[1][t][head] - sum).abs().max().item<double>(), 1e-13) << scores.window << " " << scores.cap;
      }
  }
}

TEST(Attention, ALongSequenceWithAWindowIsCutIntoTiles) {
  for (const std::int64_t window : {1, 300, 1500}) {
    const at::Tensor q = random_tensor({1, 2100, 2, 4}, 1), k = random_tensor({1, 2100, 1, 4}, 2);
    const Scores scores{0.5, window, 0};
    const at::Tensor expected =
        at::matmul(attention_probabilities(q, k, scores, 0, 2100), k.transpose(1, 2)).transpose(1, 2);
    EXPECT_LT((causal_attention(q, k, k, scores) - expected).abs().max().item<double>(), 1e-13) << window;
  }
}

// Without gradients a CPU has a pass of its own, in float32; with them, and in float64, the composed one.
TEST(Attention, InTilesIsTheComposedOne) {
  struct Case {
    std::int64_t b, t, heads, key_heads, d, d_value;
    Scores scores;
  };
  for (const Case& c :
       {Case{1, 1, 1, 1, 8, 8, {1, 0, 0}}, Case{2, 15, 4, 2, 16, 16, {0.25, 0, 0}}, Case{1, 17, 3, 1, 5, 7, {1, 0, 0}},
        Case{2, 300, 2, 1, 64, 64, {0.125, 0, 0}}, Case{1, 700, 6, 2, 24, 40, {0.3, 0, 0}},
        Case{1, 515, 2, 2, 16, 16, {0.25, 1, 0}}, Case{1, 515, 2, 2, 16, 16, {0.25, 100, 0}},
        Case{2, 520, 2, 1, 16, 16, {1, 300, 5}}, Case{1, 256, 1, 1, 16, 16, {3, 0, 2}}}) {
    const at::Tensor q = random_tensor({c.b, c.t, c.heads, c.d}, 1), k = random_tensor({c.b, c.t, c.key_heads, c.d}, 2),
                     v = random_tensor({c.b, c.t, c.key_heads, c.d_value}, 3);
    const at::Tensor expected = causal_attention(q, k, v, c.scores);  // float64
    const auto single = [](const at::Tensor& x) { return x.to(at::kFloat); };
    // Vectors as a view of others: heads of queries, keys and values lie beside each other.
    const at::Tensor together = at::cat({single(q), single(q)}, 2).narrow(2, c.heads, c.heads);
    const double difference = (causal_attention(together, single(k), single(v), c.scores).to(at::kDouble) - expected)
                                  .abs()
                                  .max()
                                  .item<double>();
    // Scores of up to about 30 have an error of 30·2^-24 each; values are about 1.
    EXPECT_LT(difference, 1e-5) << c.t << " " << c.d << " " << c.scores.window << " " << c.scores.cap;
    const at::Tensor q8 = q.to(at::kBFloat16), k8 = k.to(at::kBFloat16), v8 = v.to(at::kBFloat16);
    const at::Tensor rounded = causal_attention(q8.to(at::kDouble), k8.to(at::kDouble), v8.to(at::kDouble), c.scores);
    const double error = (causal_attention(q8, k8, v8, c.scores).to(at::kDouble) - rounded).abs().max().item<double>();
    EXPECT_LT(error, 0x1p-8 * rounded.abs().max().item<double>());  // the result is rounded to eight bits
  }
}

TEST(Attention, InTilesDoesNotDependOnTheNumberOfThreads) {
  const at::Tensor q = random_tensor({2, 333, 4, 16}, 1, at::kFloat), k = random_tensor({2, 333, 2, 16}, 2, at::kFloat);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = causal_attention(q, k, k, {0.25, 0, 0});
  at::set_num_threads(3);
  EXPECT_TRUE(at::equal(one, causal_attention(q, k, k, {0.25, 0, 0})));
  at::set_num_threads(threads);
}

TEST(Attention, InTilesKeepsNaNAndIgnoresLaterKeys) {
  at::Tensor q = random_tensor({1, 40, 1, 8}, 1, at::kFloat), k = random_tensor({1, 40, 1, 8}, 2, at::kFloat);
  const at::Tensor before = causal_attention(q, k, k, {1, 0, 0});
  k[0][30].fill_(std::numeric_limits<float>::quiet_NaN());
  const at::Tensor after = causal_attention(q, k, k, {1, 0, 0});
  EXPECT_TRUE(at::equal(after.narrow(1, 0, 24), before.narrow(1, 0, 24)));  // of tiles that end before it
  EXPECT_TRUE(at::isnan(after[0][35]).all().item<bool>());
}

// Kernels of a CPU, which passes without gradients take, against the composed bodies in float64.
TEST(CpuKernels, AreTheComposedOperations) {
  const auto error = [](const at::Tensor& single, const at::Tensor& exact) {
    return (single.to(at::kDouble) - exact).abs().max().item<double>();
  };
  for (const std::int64_t d : {1, 7, 16, 100, 576}) {
    const at::Tensor x = random_tensor({2, 300, d}, 1), gain = random_tensor({d}, 2);
    EXPECT_LT(error(rms_norm(x.to(at::kFloat), gain.to(at::kFloat), 1e-5), rms_norm(x, gain, 1e-5)), 2e-5) << d;
    EXPECT_LT(error(rms_norm(x.to(at::kFloat), {}, 1e-5), rms_norm(x, {}, 1e-5)), 1e-5) << d;
    const at::Tensor up = random_tensor({2, 300, d}, 3), gate = x * 30;  // beyond what exp bears in float32, both ways
    EXPECT_LT(error(silu_product(gate.to(at::kFloat), up.to(at::kFloat)), at::silu(gate) * up), 1e-4) << d;
  }
  for (const bool halves : {false, true})
    for (const std::int64_t turning : {8, 12}) {
      const at::Tensor x = random_tensor({2, 700, 5, 12}, 1).narrow(2, 1, 3);  // a slice of heads
      const at::Tensor table = rotary_table(800, turning, 10000, at::kDouble);
      EXPECT_LT(error(rotate(x.to(at::kFloat), table.to(at::kComplexFloat), halves), rotate(x, table, halves)), 2e-6)
          << halves << " " << turning;
    }
}

TEST(Linear, WithAPackedWeightIsTheSameProduct) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const std::int64_t rows : {1, 7, 130}) {
      const at::Tensor x = random_tensor({2, rows, 48}, 1, type), weight = random_tensor({80, 48}, 2, type),
                       bias = random_tensor({80}, 3, at::kFloat);
      const at::Tensor packed = packed_weight(weight, 64);
      const at::Tensor exact = at::linear(x.to(at::kDouble), weight.to(at::kDouble));
      // Sums of 48 products of numbers near 1; results, and sums with the bias, rounded to 8 bits.
      const double tolerance = type == at::kFloat ? 48 * float32_eps * 4 : 0x1p-7 * exact.abs().max().item<double>();
      EXPECT_LT((apply_linear(x, packed, {}).to(at::kDouble) - exact).abs().max().item<double>(), tolerance);
      EXPECT_LT(
          (apply_linear(x, packed, bias).to(at::kDouble) - exact - bias.to(at::kDouble)).abs().max().item<double>(),
          tolerance);
      EXPECT_EQ(apply_linear(x, packed, {}).scalar_type(), type);
    }
}

TEST(SquaredRelu, IsTheSquareOfThePositivePart) {
  const at::Tensor x = at::tensor({-2.0, -0.0, 0.5, 3.0});
  EXPECT_TRUE(at::equal(squared_relu(x), at::tensor({0.0, 0.0, 0.25, 9.0})));
}

// Against autograd through the definition.
TEST(FeedForwardProducts, AreTheActivationAndItsGradient) {
  const at::Tensor x_nm = random_tensor({13, 6}, 1), up_fm = random_tensor({10, 6}, 2);
  const at::Tensor down_mf = random_tensor({6, 10}, 3), d_nm = random_tensor({13, 6}, 4);
  const at::Tensor before_nf = at::mm(x_nm, up_fm.t()).set_requires_grad(true);
  const at::Tensor inner_nf = at::relu(before_nf).square();
  const auto gradients = torch::autograd::grad({at::mm(inner_nf, down_mf.t())}, {before_nf}, {d_nm});
  EXPECT_TRUE(at::allclose(squared_relu_product(x_nm, up_fm), inner_nf));
  EXPECT_TRUE(at::allclose(squared_relu_product_backward(d_nm, down_mf, inner_nf.detach()), gradients[0]));
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

TEST(LinearCrossEntropy, OfSoftCappedLogits) {
  const at::Tensor x = random_tensor({3, 5}, 1), weight = random_tensor({4, 5}, 2);
  const double cap = 1.3;
  double sum = 0;
  for (std::int64_t row = 0; row < 3; ++row) {
    const auto logit = [&](std::int64_t word) {
      return cap * std::tanh((x[row] * weight[word]).sum().item<double>() / cap);
    };
    double total = 0;
    for (std::int64_t word = 0; word < 4; ++word) total += std::exp(logit(word));
    sum += std::log(total) - logit(row);
    EXPECT_NEAR(capped_logits(x, weight, cap)[row][3].item<double>(), logit(3), 1e-14);
  }
  const at::Tensor targets = at::arange(3);
  EXPECT_NEAR(linear_cross_entropy(x, weight, targets, logits_slice_bytes, cap).item<double>(), sum / 3, 1e-13);
}

// Without gradients only the targets are kept of each part of the rows.
TEST(LinearCrossEntropy, IsTheSameToTheLastBitWithAndWithoutGradients) {
  const std::int64_t rows = 500, vocabulary = 20011;  // 40 MB of logits
  const at::Tensor x = random_tensor({rows, 8}, 1, at::kFloat), weight = random_tensor({vocabulary, 8}, 2, at::kFloat);
  const at::Tensor targets = (at::arange(rows) * 7919).remainder(vocabulary);
  for (const double cap : {0.0, 1.5})
    for (const std::int64_t bytes : {logits_slice_bytes, std::int64_t{24} << 20}) {
      const double plain = linear_cross_entropy(x, weight, targets, bytes, cap).item<double>();
      const at::Tensor leaf = x.clone().set_requires_grad(true);
      EXPECT_EQ(plain, linear_cross_entropy(leaf, weight, targets, bytes, cap).item<double>());
      const at::Tensor logits = capped_logits(x.to(at::kDouble), weight.to(at::kDouble), cap);
      // Float32 logits of 8 products, and sums of 500 numbers near 10.
      EXPECT_NEAR(plain, at::cross_entropy_loss(logits, targets).item<double>(), 1e-5);
    }
}

TEST(LinearCrossEntropy, SurvivesHugeLogits) {
  const at::Tensor x = at::full({2, 1}, 1e4f), weight = at::tensor({1.0f, -1.0f}).unsqueeze(1);
  EXPECT_EQ(linear_cross_entropy(x, weight, at::zeros({2}, at::kLong)).item<double>(), 0);
  EXPECT_EQ(linear_cross_entropy(x, weight, at::ones({2}, at::kLong)).item<double>(), 2e4);
}

TEST(LargeTensors, KeepFreedPagesForTheNextOfAboutTheirSize) {
  constexpr std::int64_t floats = 1 << 20;
  const auto at_place = [](const at::Tensor& tensor) { return tensor.const_data_ptr<float>(); };
  at::Tensor outlives;
  {
    const LargeTensors memory;
    at::Tensor first = at::ones({3 * floats}), second = at::ones({5 * floats});
    const float* place = at_place(first);
    EXPECT_EQ(memory.kept(), 0);
    first.reset();
    EXPECT_EQ(memory.kept(), 3 * floats * sizeof(float));
    EXPECT_NE(at_place(at::empty({2 * floats})), place);  // a third would be wasted
    EXPECT_NE(at_place(at::empty({4 * floats})), place);  // does not fit
    const at::Tensor again = at::ones({3 * floats - 1});
    EXPECT_EQ(at_place(again), place);
    EXPECT_EQ(second.sum().item<float>(), 5 * floats);
    const at::Tensor small = at::ones({1000});  // the heap's
    outlives = at::full({2 * floats}, 7.0F);
  }
  EXPECT_EQ(outlives.sum().item<float>(), 14 * floats);
  outlives.reset();
  const LargeTensors memory;
  EXPECT_EQ(memory.kept(), 0);  // given back to the system
}

TEST(LargeTensors, KeepNoMoreThanTheirLimit) {
  const LargeTensors memory;
  constexpr std::size_t bytes = std::size_t{24} << 20;
  std::vector<at::Tensor> tensors;
  for (int i = 0; i < 20; ++i) tensors.push_back(at::empty({static_cast<std::int64_t>(bytes)}, at::kByte));
  tensors.clear();
  EXPECT_EQ(memory.kept(), LargeTensors::most_kept / bytes * bytes);
}

TEST(Device, AnUnknownNameIsRefused) {
  test::expect_error(Fault::input, "unknown device 'tpu'; did you mean 'cpu'?", [] { choose_device("tpu"); });
}

TEST(Device, AGpuHasANumber) {
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda:1 ", "cuda:1.5", "cuda:99999999999"})
    test::expect_error(Fault::input, fmt::format("unknown device '{}'; a GPU is 'cuda:' and its number", name),
                       [&] { choose_device(name); });
  ComputeDevice gpu;
  gpu.device = at::Device(at::kCUDA, 0);
  EXPECT_EQ(gpu.name(), "cuda");
  gpu.device = at::Device(at::kCUDA, 1);
  EXPECT_EQ(gpu.name(), "cuda:1");
  EXPECT_EQ(choose_device("auto").name(), "cpu");
}

TEST(Device, AProgramWithoutCudaSaysSo) {
  for (const char* name : {"cuda", "cuda:0", "cuda:1"})
    test::expect_error(Fault::input, fmt::format("--device {}: this program was built without CUDA;", name),
                       [&] { choose_device(name); });
}

TEST(Gpu, OneLineSaysWhyItCannotBeUsed) {
  const GpuFacts good{.driver = 13010,
                      .runtime = 13000,
                      .count = 2,
                      .index = 1,
                      .error = "",
                      .name = "NVIDIA H200",
                      .major = 9,
                      .minor = 0};
  const auto reason = [&](const auto& change) {
    GpuFacts facts = good;
    change(facts);
    return why_not(facts).value_or("");
  };
  EXPECT_EQ(why_not(good), std::nullopt);
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.driver = 13000; }), "");
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.runtime = 13020; }), "");  // the same major version
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.driver = 0; }), "there is no NVIDIA driver");
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.driver = 12040, facts.count = 0, facts.error = "insufficient"; }),
            "the NVIDIA driver is too old: it knows CUDA 12.4, and this program needs 13.0");
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.count = 0, facts.error = "system not yet initialized"; }),
            "the NVIDIA driver does not work: system not yet initialized");
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.count = 0; }), "no GPU was found");
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.index = 2; }), "there are 2 GPUs, cuda:0 to cuda:1");
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.count = 1; }), "there is 1 GPU, cuda:0");
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.name = "Tesla T4", facts.major = 7, facts.minor = 5; }),
            "the Tesla T4 has compute capability 7.5, and 8.0 is needed");
  EXPECT_EQ(reason([](GpuFacts& facts) { facts.major = 8; }), "");
}

TEST(Gpu, AutoWarnsOnlyWhereThereIsSomething) {
  EXPECT_TRUE((GpuFacts{.driver = 0, .runtime = 13000, .error = "insufficient"}.none()));
  EXPECT_TRUE((GpuFacts{.driver = 13000, .runtime = 13000}.none()));
  EXPECT_FALSE((GpuFacts{.driver = 12040, .runtime = 13000, .error = "insufficient"}.none()));
  EXPECT_FALSE((GpuFacts{.driver = 13000, .runtime = 13000, .count = 1}.none()));
}

TEST(Gpu, VersionsAreWrittenAsTheirMakersDo) {
  EXPECT_EQ(cuda_version(13000), "13.0");
  EXPECT_EQ(cuda_version(12040), "12.4");
  EXPECT_EQ(library_version(91900), "9.19.0");  // cuDNN 9.19.0
  EXPECT_EQ(library_version(22809), "2.28.9");  // NCCL 2.28.9
}

TEST(Device, TheCpuComputesInFloat32) {
  const ComputeDevice device = choose_device("cpu");
  EXPECT_EQ(device.type, at::kFloat);
  EXPECT_GT(peak_memory_mb(device), 10);
}

}  // namespace
}  // namespace headscope
