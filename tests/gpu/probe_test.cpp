// Measurements of heads on a GPU against their definitions in float64.
#include "probe/probe.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAStream.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>

#include "gpu/support.h"
#include "model/decoder.h"
#include "ops/cuda/element_type.h"
#include "probe/attention_statistics.h"
#include "probe/cuda/attention_sums.h"
#include "probe/key_statistics.h"
#include "support/gradients.h"
#include "support/metric_names.h"

namespace headscope {
namespace {

using test::gpu;
using test::random_tensor;

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

// log Σ exp(score) of each row: float32 [b, heads, t], as attention leaves it.
at::Tensor log_sums_of(const at::Tensor& q, const at::Tensor& k, double scale) {
  const at::Tensor keys = k.to(at::kDouble).transpose(1, 2).repeat_interleave(q.size(2) / k.size(2), 1);
  const at::Tensor scores = at::matmul(q.to(at::kDouble).transpose(1, 2), keys.mT()) * scale;
  const at::Tensor hidden = at::ones({q.size(1), q.size(1)}, scores.options().dtype(at::kBool)).triu(1);
  return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity())
      .logsumexp(at::IntArrayRef{-1})
      .to(at::kFloat);
}

void expect_attention(const at::Tensor& q, const at::Tensor& k) {
  SCOPED_TRACE(::testing::Message() << q.sizes() << k.sizes() << q.scalar_type());
  const auto d = static_cast<double>(q.size(3)), scale = 1 / std::sqrt(d), t = static_cast<double>(q.size(1));
  const at::Tensor exact_q = q.to(at::kDouble), exact_k = k.to(at::kDouble);
  // A score is a sum of d products in float32. Tensor cores add 8 or more at a time and cut off what is below the last
  // place of the largest; no partial sum exceeds |q|·|k|.
  const double largest = scale * (exact_q.norm(2, -1).max() * exact_k.norm(2, -1).max()).item<double>();
  const double error = (d / 8 + 2) * 0x1p-23 * largest;
  const Tolerance tolerance = [&](std::string_view metric, double) {
    // Scores off by at most e change p by 2e·p and an entropy by 2e·H <= 2e·ln t; consistency takes two entropies.
    // 1e-5: exp to 2 + 1.2|x| units in the last place, and sums in float32.
    return metric == "max_logit" ? error + 1e-6 : 1e-5 + 4 * error * std::max(1.0, std::log(t));
  };
  const HeadValues exact = attention_statistics_composed(exact_q, exact_k, {.scale = scale});
  expect_values(attention_statistics(q, k, {.scale = scale}), exact, tolerance);
  SCOPED_TRACE("with the sums of rows given");
  expect_values(attention_statistics(q, k, {.scale = scale}, log_sums_of(q, k, scale)), exact, tolerance);
  SCOPED_TRACE("entropy_seed");
  expect_values(seed_entropy(q, k, {.scale = scale}), seed_entropy(exact_q, exact_k, {.scale = scale}), tolerance);
}

TEST(GpuProbe, AttentionStatisticsAreTheDefinitions) {
  const std::vector<AttentionCase> cases = {
      {8, 256, 8, 4, 64},      {3, 200, 4, 4, 32},     {2, 129, 6, 2, 128}, {1, 130, 2, 1, 64}, {4, 1, 2, 2, 64},
      {2, 2, 2, 1, 16},        {2, 64, 2, 2, 48},      {5, 65, 3, 1, 80},   {2, 63, 1, 1, 112}, {4, 300, 4, 2, 64, 30},
      {2, 190, 2, 2, 128, 30}, {9, 1000, 2, 1, 64, 3}, {1, 65, 4, 2, 80},   {3, 128, 2, 2, 64}, {8, 127, 4, 1, 32},
      {3, 300, 6, 3, 128},     {2, 257, 2, 1, 64},     {2, 140, 2, 2, 256}, {1, 1, 1, 1, 32},   {2, 140, 2, 1, 36},
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
    const at::Tensor odd = random_tensor({3, 70, 4, 67}, 5).to(gpu().device, type).narrow(3, 3, 64);
    expect_attention(odd.narrow(2, 0, 2), odd.narrow(2, 2, 2));  // not aligned
    const at::Tensor zero = random_tensor({2, 100, 2, 64}, 4).to(gpu().device, type);
    zero.narrow(1, 10, 50).zero_();
    expect_attention(both.narrow(0, 0, 2).narrow(1, 0, 100).narrow(2, 0, 4), zero);
    expect_attention(zero.narrow(0, 0, 1).expand({4, -1, -1, -1}), zero.narrow(0, 1, 1).expand({4, -1, -1, -1}));
  }
}

TEST(GpuProbe, AttentionStatisticsShowNotANumber) {
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
    // A key that is infinite: the largest score is, and nothing else is known.
    q.copy_(at::ones_like(q));
    k.select(0, 1).select(0, 100).select(0, 0).fill_(std::numeric_limits<double>::infinity());
    const HeadValues infinite = attention_statistics(q, k, {.scale = 0.125});
    EXPECT_TRUE(std::isinf(infinite.at("max_logit")[0]));
    EXPECT_TRUE(std::isnan(infinite.at("entropy")[0]));
    EXPECT_TRUE(std::isfinite(infinite.at("max_logit")[1]));
  }
}

void expect_keys(const at::Tensor& k) {
  SCOPED_TRACE(::testing::Message() << k.sizes() << k.strides() << k.scalar_type());
  // Both in float64 in another order; deviations lose the digits that mean and deviation share. A vector of bfloat16 is
  // measured in float32: up to 12 roundings of 6e-8 in a sum of squares, of which (Σ k²)² / Σ k⁴ takes three.
  const double relative = k.scalar_type() == at::kBFloat16 ? 2e-6 : 1e-10;
  const Tolerance tolerance = [&](std::string_view metric, double value) {
    return metric == "k_top_dim" ? 0.0 : relative * std::max(1.0, std::abs(value));
  };
  expect_values(key_statistics(k), key_statistics_composed(k), tolerance);
  expect_values(begin_query_norms(k).wait(), begin_query_norms(k.to(at::kDouble)).wait(), tolerance);
  // The products of float32 values are exact in float64 up to a rounding; sums over tokens in another order.
  const at::Tensor gram = key_gram(k), exact = key_gram(k.to(at::kDouble).cpu());
  EXPECT_LE((gram.cpu() - exact).norm().item<double>(), 1e-13 * exact.norm().item<double>());
  EXPECT_TRUE(at::equal(gram, gram.mT()));
}

TEST(GpuProbe, KeyStatisticsAreTheDefinitions) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    for (const std::int64_t d : {1, 16, 32, 33, 48, 64, 80, 128})
      for (const auto& [b, t] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 7}, {3, 100}, {8, 513}})
        expect_keys(random_tensor({b, t, 3, d}, 1).to(gpu().device, type));
    const at::Tensor k = random_tensor({2, 90, 6, 64}, 2).to(gpu().device, type);
    expect_keys(k.narrow(2, 1, 3));
    expect_keys(k.narrow(3, 1, 40));                   // begins at an odd element
    expect_keys(k.narrow(1, 3, 70).narrow(3, 2, 50));  // sequences that do not follow each other
    expect_keys(k.transpose(0, 1));
    expect_keys(random_tensor({2, 9000, 2, 64}, 3).to(gpu().device, type));  // several stages in a chunk
    k.narrow(1, 0, 20).zero_();                                              // the first among them
    expect_keys(k);
    k.select(2, 1).zero_();  // a head without keys
    k.select(2, 2).narrow(1, 0, 60).zero_();
    expect_keys(k);
    k.select(2, 3).fill_(1.5);  // all the same
    const HeadValues values = key_statistics(k);
    for (const char* metric : {"k_norm_std", "k_std"}) EXPECT_EQ(values.at(metric)[3], 0) << metric;
    EXPECT_NEAR(values.at("k_norm")[3], 12, 1e-12);
    EXPECT_NEAR(values.at("k_cosine")[3], 1, type == at::kBFloat16 ? 1e-6 : 1e-12);
  }
}

// Queries, keys and their rotations: slices of larger tensors, as a layer has them.
HeadVectors some_vectors(std::int64_t seed, at::ScalarType type, bool with_log_sum) {
  const auto both = [&](std::uint64_t part) {
    return random_tensor({2, 150, 6, 64}, static_cast<std::uint64_t>(seed) * 10 + part).to(gpu().device, type);
  };
  const at::Tensor plain = both(0), rotated = both(1);
  HeadVectors vectors{plain.narrow(2, 0, 4),   plain.narrow(2, 4, 2),   plain.narrow(2, 4, 2),
                      rotated.narrow(2, 0, 4), rotated.narrow(2, 4, 2), {.scale = 0.125}};
  if (with_log_sum) vectors.log_sum_bht = log_sums_of(vectors.q_rotated_bthd, vectors.k_rotated_bthd, 0.125);
  return vectors;
}

// The values one by one, each waited for.
HeadValues values_of(const HeadVectors& v) {
  HeadValues values = key_statistics(v.k_bthd);
  values.merge(spectrum_of_gram(key_gram(v.k_bthd).cpu()));
  values.merge(begin_query_norms(v.q_bthd).wait());
  values.merge(attention_statistics(v.q_rotated_bthd, v.k_rotated_bthd, v.scores, v.log_sum_bht));
  values.merge(seed_entropy(v.q_bthd, v.k_bthd, v.scores));
  for (std::size_t head = 0; head < values.at("q_norm").size(); ++head)
    values["qk_ratio"].push_back(values.at("q_norm")[head] / values.at("k_norm")[head / 2]);
  return values;
}

const Tolerance exactly = [](std::string_view, double) { return 0.0; };

TEST(GpuProbe, MeasurerGivesWhatTheMeasurementsGive) {
  const MetricSelection all("all", "test");
  for (const bool with_log_sum : {false, true}) {
    HeadMeasurer measurer(all);
    const Hooks hooks = measurer.hooks();
    std::vector<HeadValues> expected;
    for (std::int64_t layer = 0; layer < 3; ++layer) {
      const HeadVectors vectors = some_vectors(layer, layer == 2 ? at::kFloat : at::kBFloat16, with_log_sum);
      hooks.observe(layer, vectors);
      expected.push_back(values_of(vectors));
    }
    const HeadMeasurements measured = measurer.finish();
    ASSERT_EQ(measured.layers.size(), 3U);
    for (std::size_t layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(test::names_of(measured.layers[layer]), test::names_of_one_pass());
      expect_values(measured.layers[layer], expected[layer], exactly);
    }
    EXPECT_TRUE(measured.gains.q.empty());
    // As after a replay, which leaves its results in the same places.
    const HeadMeasurements again = measurer.finish();
    for (std::size_t layer = 0; layer < 3; ++layer) expect_values(again.layers[layer], expected[layer], exactly);
  }
}

TEST(GpuProbe, MeasurerDoesNotWaitForWorkThatWasQueuedLater) {
  const MetricSelection all("all", "test");
  const HeadVectors vectors = some_vectors(1, at::kBFloat16, true);
  const HeadValues expected = values_of(vectors);
  const at::Tensor large = at::ones({8192, 8192}, at::TensorOptions(gpu().device).dtype(at::kFloat));
  at::Tensor product = at::matmul(large, large);  // the library is loaded
  HeadMeasurer measurer(all);
  measurer.hooks().observe(0, vectors);
  measurer.send();
  vectors.k_bthd.zero_();
  vectors.q_rotated_bthd.zero_();
  for (int i = 0; i < 100; ++i) product = at::matmul(large, large);  // two seconds
  c10::Event later(at::kCUDA);
  later.record(c10::impl::VirtualGuardImpl(at::kCUDA).getStream(large.device()));
  expect_values(measurer.finish().layers.front(), expected, exactly);
  EXPECT_FALSE(later.query());
  later.synchronize();
}

TEST(GpuProbe, GainsAreThoseOfTheMomentTheyWereObserved) {
  DecoderConfig config;
  const Decoder model = make_decoder(config, 3, gpu().device);
  const at::NoGradGuard no_gradients;
  for (const DecoderLayer& layer : model.layers) {
    layer.q_gain.copy_(random_tensor(layer.q_gain.sizes(), 1));
    layer.k_gain.copy_(random_tensor(layer.k_gain.sizes(), 2));
  }
  const Gains expected = gains_of(model);
  const MetricSelection all("all", "test");
  HeadMeasurer measurer(all);
  measurer.observe_gains(model);
  for (const DecoderLayer& layer : model.layers) layer.k_gain.zero_();
  const Gains measured = measurer.finish().gains;
  EXPECT_EQ(measured.q, expected.q);
  EXPECT_EQ(measured.k, expected.k);
  ASSERT_EQ(expected.k.size(), model.layers.size());
  EXPECT_EQ(expected.q.front(), to_doubles(random_tensor(model.layers[0].q_gain.sizes(), 1, at::kFloat)));
}

TEST(GpuProbe, LossAndMeasurementsAgreeWithTheCpu) {
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

// The same model in float32 on both: TF32 is off, sums over tokens are float64. The errors are differences of values
// that lie close together.
TEST(GpuProbe, OtherRanksAndTheirErrorsAgreeWithTheCpu) {
  DecoderConfig config;
  const at::Tensor tokens = at::randint(config.vocabulary, {8, 256}, at::kLong);
  const Batch here{tokens, tokens}, there{tokens.to(gpu().device), tokens.to(gpu().device)};
  const MetricSelection chosen("k_pr,other_rank,score", "test");
  const ProbeResult cpu =
      probe_model(make_decoder(config, 3), {here}, at::kFloat, chosen, /*with_loss=*/false, /*with_errors=*/true);
  const Decoder model = make_decoder(config, 3, gpu().device);
  const Tolerance tolerance = [](std::string_view, double value) { return 1e-3 * std::abs(value); };
  for (const bool with_errors : {true, false}) {  // sums by sequence go to the CPU at once; or sums of all at the end
    const ProbeResult on_gpu = probe_model(model, {there}, at::kFloat, chosen, /*with_loss=*/false, with_errors);
    ASSERT_EQ(on_gpu.layers.size(), cpu.layers.size());
    for (std::size_t layer = 0; layer < cpu.layers.size(); ++layer)
      expect_values(on_gpu.layers[layer], cpu.layers[layer], tolerance);
    ASSERT_EQ(on_gpu.rank_errors.has_value(), with_errors);
    if (!with_errors) continue;
    ASSERT_EQ(on_gpu.rank_errors->mean.size(), cpu.rank_errors->mean.size());
    for (const auto& [metric, error] : cpu.rank_errors->mean)
      EXPECT_NEAR(on_gpu.rank_errors->mean.at(metric), error, 1e-2 * error) << metric;
  }
}

}  // namespace
}  // namespace headscope
