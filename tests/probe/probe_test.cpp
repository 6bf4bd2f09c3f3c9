#include "probe/probe.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include <cmath>

#include "probe/attention_statistics.h"
#include "probe/key_statistics.h"
#include "support/metric_names.h"
#include "support/tensor_oracle.h"

namespace headscope {
namespace {

using test::TensorOracle;

// Attention is in float32: scores of size s have errors of s · eps, and so has the logarithm of what they make. All
// else is summed in float64 from the same float32 values.
double tolerance(std::string_view metric, double expected, double largest_score, at::ScalarType type) {
  const double eps = type == at::kFloat ? 1.2e-7 : 2.3e-16;
  const bool by_spectrum = metric == "k_pr" || metric == "k_erank" || metric == "k_pr_eig" || metric == "k_stable_rank";
  if (by_spectrum) return 1e-6 * std::max(1.0, std::abs(expected));  // singular values from a Gram matrix: sqrt(eps)
  if (metric.starts_with("k_") || metric == "q_norm" || metric == "qk_ratio") return 1e-12 * std::abs(expected) + 1e-13;
  if (metric == "max_logit") return 8 * eps * std::abs(expected);
  return 16 * eps * std::max(1.0, largest_score);
}

void expect_values(const HeadValues& values, const TensorOracle& oracle, at::ScalarType type = at::kFloat) {
  const double largest = oracle.get("expected.max_logit").abs().max().item<double>();
  for (const auto& [metric, measured] : values) {
    const at::Tensor expected = oracle.get(fmt::format("expected.{}", metric));
    ASSERT_EQ(static_cast<std::int64_t>(measured.size()), expected.numel()) << metric;
    for (std::size_t head = 0; head < measured.size(); ++head) {
      const double wanted = expected[static_cast<std::int64_t>(head)].item<double>();
      if (std::isnan(wanted) || std::isinf(wanted))
        EXPECT_EQ(std::isnan(wanted), std::isnan(measured[head])) << metric;
      else
        EXPECT_NEAR(measured[head], wanted, tolerance(metric, wanted, largest, type)) << metric << " of " << head;
    }
  }
}

HeadValues measure_layer(const HeadVectors& vectors, const MetricSelection& chosen) {
  HeadMeasurer measurer(chosen);
  measurer.hooks().observe(0, vectors);
  return measurer.finish().layers.front();
}

class Measurements : public ::testing::TestWithParam<const char*> {
 protected:
  TensorOracle oracle{fmt::format("probe_{}.safetensors", GetParam())};
  at::Tensor q = oracle.get("q"), k = oracle.get("k");
  Scores scores{oracle.number("scale"), static_cast<std::int64_t>(oracle.number("window")), oracle.number("cap")};

  [[nodiscard]] HeadVectors vectors(at::ScalarType type) const {
    const at::Tensor q_typed = q.to(type), k_typed = k.to(type);
    return {q_typed, k_typed, k_typed, q_typed, k_typed, scores};
  }
};

TEST_P(Measurements, AgreeWithNumpy) {
  const HeadValues values = measure_layer(vectors(at::kFloat), MetricSelection("all", "test"));
  EXPECT_EQ(test::names_of(values), test::names_of_one_pass());
  expect_values(values, oracle);
}

TEST_P(Measurements, ByTensorOperationsAgreeWithNumpy) {
  expect_values(key_statistics_composed(k.to(at::kFloat)), oracle);
  expect_values(attention_statistics_composed(q.to(at::kFloat), k.to(at::kFloat), scores), oracle);
}

TEST_P(Measurements, AreExactInFloat64) {
  const HeadValues values = measure_layer(vectors(at::kDouble), MetricSelection("all", "test"));
  expect_values(values, oracle, at::kDouble);
}

// Attention of float32 scores does not depend on how heads and rows are shared out.
TEST_P(Measurements, AreTheSameWithAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const HeadValues alone =
      measure_layer(vectors(at::kFloat), MetricSelection("attention,pattern,norm,outlier", "test"));
  at::set_num_threads(threads);
  const HeadValues shared =
      measure_layer(vectors(at::kFloat), MetricSelection("attention,pattern,norm,outlier", "test"));
  for (const auto& [metric, values] : alone)
    for (std::size_t head = 0; head < values.size(); ++head)
      EXPECT_TRUE(values[head] == shared.at(metric)[head] || std::isnan(values[head])) << metric;
}

TEST_P(Measurements, InductionAgreesWithNumpy) {
  if (k.size(1) == 1) GTEST_SKIP() << "one token does not repeat";
  const HeadValues measured = induction_score(q.to(at::kFloat), k.to(at::kFloat), scores);
  EXPECT_EQ(measured.size(), 2U);
  const double largest = oracle.get("expected.max_logit").abs().max().item<double>();
  for (const auto& [metric, values] : measured) {
    const at::Tensor expected = oracle.get(std::string(metric));
    for (std::size_t head = 0; head < values.size(); ++head)
      EXPECT_NEAR(values[head], expected[static_cast<std::int64_t>(head)].item<double>(),
                  tolerance("induction", 1, largest, at::kFloat))
          << metric;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Measurements,
                         ::testing::Values("random", "sharp", "one_sequence", "one_token", "one_key", "constant_keys",
                                           "one_hot_keys", "zero_keys", "some_zero_keys", "huge_keys", "sink", "window",
                                           "wide_window", "capped", "window_and_cap"),
                         [](const auto& one) { return std::string(one.param); });

// A previous-token head, a head on itself, a head on the first token: scores that leave no doubt.
TEST(Attention, OfKnownPatterns) {
  constexpr std::int64_t t = 100;  // more than a block
  const at::Tensor positions = at::eye(t, at::kFloat).view({1, t, 1, t}).repeat({2, 1, 1, 1});
  const at::Tensor before = positions.roll(1, 1), first = positions.narrow(1, 0, 1).expand_as(positions);
  const auto of = [&](const at::Tensor& k) { return attention_statistics(1000 * positions, k, {}); };
  // Key j answers to position j + 1.
  const HeadValues previous = of(positions.roll(-1, 1));
  EXPECT_NEAR(previous.at("previous")[0], 1, 1e-6);
  EXPECT_NEAR(previous.at("sink")[0], 1.0 / (t - 1), 1e-6);  // the second token's
  EXPECT_NEAR(previous.at("constancy")[0], 0, 1e-6);
  EXPECT_NEAR(previous.at("consistency")[0], 1, 1e-6);
  const HeadValues self = of(positions);
  EXPECT_NEAR(self.at("self")[0], 1, 1e-6);
  EXPECT_NEAR(self.at("entropy")[0], 0, 1e-6);
  EXPECT_EQ(self.at("max_logit")[0], 1000);
  const HeadValues sink = attention_statistics(1000 * first, positions, {});
  EXPECT_NEAR(sink.at("sink")[0], 1, 1e-6);
  EXPECT_NEAR(sink.at("constancy")[0], 1, 1e-6);
  // No scores: row i is uniform over i + 1 keys.
  const HeadValues uniform = of(at::zeros_like(before));
  EXPECT_NEAR(uniform.at("entropy")[0], std::lgamma(t + 1) / t, 1e-6);
  EXPECT_NEAR(uniform.at("entropy_norm")[0], 1, 1e-6);
  EXPECT_NEAR(uniform.at("consistency")[0], 1, 1e-6);
}

// erank >= pr >= pr_eig >= stable_rank, all between 1 and d, whatever the keys.
TEST(Spectrum, RanksAreOrdered) {
  at::Generator generator = at::detail::createCPUGenerator(3);
  for (int trial = 0; trial < 200; ++trial) {
    const std::int64_t n = 1 + trial % 40, d = 2 + 2 * (trial % 9);
    at::Tensor k = at::randn({1, n, 2, d}, generator).pow(1 + trial % 5);
    k = k * at::randn({d}, generator).exp();  // directions of very different size
    const HeadValues values = spectrum_of_gram(key_gram(k));
    for (std::size_t head = 0; head < 2; ++head) {
      const double slack = 1e-9 * static_cast<double>(d);
      EXPECT_LE(values.at("k_erank")[head], static_cast<double>(std::min(n, d)) * (1 + 1e-6) + slack);
      EXPECT_GE(values.at("k_erank")[head], values.at("k_pr")[head] - slack);
      EXPECT_GE(values.at("k_pr")[head], values.at("k_pr_eig")[head] - slack);
      EXPECT_GE(values.at("k_pr_eig")[head], values.at("k_stable_rank")[head] - slack);
      EXPECT_GE(values.at("k_stable_rank")[head], 1 - slack);
    }
  }
}

TEST(Selection, MeasuresWhatWasChosenOnly) {
  const at::Tensor x = at::randn({2, 5, 2, 4});
  const HeadValues values = measure_layer({x, x, x, x, x, 0.5}, MetricSelection("sink,rank", "test"));
  std::vector<std::string_view> names;
  for (const auto& [metric, value] : values) names.push_back(metric);
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("sink", "k_pr", "k_erank", "k_pr_eig", "k_stable_rank"));
}

TEST(Measurer, TakesTheGainsOfTheMomentAndGivesTheSameAgain) {
  DecoderConfig config;
  config.norm.offset = 1;
  const Decoder model = make_decoder(config, 3);
  const at::NoGradGuard no_gradients;
  at::Generator generator = at::detail::createCPUGenerator(1);
  for (const DecoderLayer& layer : model.layers) {
    layer.q_gain.normal_(0, 1, generator);
    layer.k_gain.normal_(0, 1, generator);
  }
  const MetricSelection all("all", "test");
  HeadMeasurer measurer(all);
  measurer.observe_gains(model);
  const Gains before = gains_of(model);
  ASSERT_EQ(before.k.size(), model.layers.size());
  for (std::size_t layer = 0; layer < before.k.size(); ++layer) {
    EXPECT_EQ(before.q[layer], to_doubles(model.layers[layer].q_gain + 1));
    EXPECT_EQ(before.k[layer], to_doubles(model.layers[layer].k_gain + 1));
  }
  for (const DecoderLayer& layer : model.layers) layer.k_gain.zero_();
  const at::Tensor x = at::randn({2, 5, 2, 4}, generator);
  measurer.hooks().observe(0, {x, x, x, x, x, {.scale = 0.5}});
  measurer.send();
  const HeadMeasurements first = measurer.finish(), again = measurer.finish();
  EXPECT_EQ(first.gains.q, before.q);
  EXPECT_EQ(first.gains.k, before.k);
  EXPECT_EQ(again.layers, first.layers);
  EXPECT_EQ(again.gains.k, before.k);
}

}  // namespace
}  // namespace headscope
