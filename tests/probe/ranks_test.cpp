#include "probe/ranks.h"

#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "core/missing.h"
#include "probe/probe.h"
#include "settings/setup.h"
#include "stats/sample_moments.h"
#include "support/tensor_oracle.h"

namespace headscope {
namespace {

using test::TensorOracle;

const MetricSelection all_ranks("k_pr,other_rank", "test");
const RankMeasures measures{"k_pr", "k_pr_centred", "k_pr_rotated", "k_pr_before_gain", "qk_pr", "qk_pr_rotated"};

// Of one layer.
HeadValues values_over_all(const HeadVectors& vectors, const std::vector<double>& gain = {}) {
  const std::vector<RankSums> sums = {over_all_sequences(rank_sums(vectors, measures, gain))};
  return rank_values(sums, measures).at(0).at(0);
}

double largest_relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] / b[i] - 1));
  return largest;
}

// tests/oracle/make_probe_oracles.py draws queries and keys before and after RoPE and a gain of each head; it takes the
// singular values of the matrices themselves.
TEST(OtherRanks, AgreeWithNumpy) {
  const TensorOracle oracle("ranks.safetensors");
  const HeadVectors vectors{.q_bthd = oracle.get("q"),
                            .k_bthd = oracle.get("k"),
                            .v_bthd = oracle.get("k"),
                            .q_rotated_bthd = oracle.get("q_rotated"),
                            .k_rotated_bthd = oracle.get("k_rotated")};
  const std::vector<double> gain = to_doubles(oracle.get("gain"));
  const HeadValues values = values_over_all(vectors, gain);
  const std::vector<RankSums> others = {without_each_sequence(rank_sums(vectors, measures, gain))};
  const std::vector<HeadValues> without = rank_values(others, measures).at(0);
  ASSERT_EQ(static_cast<std::int64_t>(without.size()), vectors.k_bthd.size(0));
  ASSERT_EQ(values.size(), 6U);
  for (const auto& [metric, of_heads] : values) {
    const std::vector<double> expected = to_doubles(oracle.get("expected." + std::string(metric)));
    ASSERT_EQ(of_heads.size(), expected.size());
    // 1e-8 of the largest singular value for each of 6, twice in the square: far below
    EXPECT_LT(largest_relative_difference(of_heads, expected), 1e-9) << metric;
    std::vector<double> means;
    for (const HeadValues& left : without) means.push_back(rough_mean(left.at(metric)));
    const double error = oracle.get("jackknife." + std::string(metric)).item<double>();
    EXPECT_NEAR(jackknife_error(means), error, 1e-7 * error) << metric;
  }
}

TEST(ScoreSpread, AgreesWithNumpy) {
  const TensorOracle oracle("ranks.safetensors");
  const at::Tensor q = oracle.get("q_rotated"), k = oracle.get("k_rotated");
  const HeadVectors vectors{q, k, k, q, k, {oracle.get("scale").item<double>()}};
  const std::vector<double> found = to_doubles(score_std(rank_sums(vectors, {"score_std"}, {})));
  EXPECT_LT(largest_relative_difference(found, to_doubles(oracle.get("expected.score_std"))), 1e-12);
}

TEST(ScoreSpread, OfEqualKeysIsNothing) {
  at::manual_seed(2);
  const at::Tensor q = at::randn({3, 40, 4, 8}, at::kDouble);
  const at::Tensor k = at::randn({1, 1, 2, 8}, at::kDouble).expand({3, 40, 2, 8});
  // Squares are exact to some roundings of 1e-16 of |q|²|k|², about 100; the root of that.
  for (const double spread : to_doubles(score_std(rank_sums({q, k, k, q, k}, {"score_std"}, {})))) {
    EXPECT_GE(spread, 0);
    EXPECT_LT(spread, 1e-6);
  }
}

TEST(OtherRanks, OfKeysWithoutFullRankAreThoseOfTheirSpace) {
  at::manual_seed(1);
  const at::Tensor narrow = at::randn({2, 50, 1, 3}, at::kDouble), basis = at::randn({3, 8}, at::kDouble);
  const at::Tensor k = at::matmul(narrow, basis), q = at::randn({2, 50, 2, 8}, at::kDouble);
  const HeadValues values = values_over_all({q, k, k, q, k});
  for (const double pr : values.at("qk_pr")) {
    EXPECT_GT(pr, 1.5);
    EXPECT_LE(pr, 3 + 1e-6);
  }
  EXPECT_EQ(values.at("k_pr_before_gain"), values.at("k_pr"));
  const HeadValues of_zero = values_over_all({q, k * 0, k, q, k});
  EXPECT_TRUE(std::isnan(of_zero.at("qk_pr")[0]) && std::isnan(of_zero.at("k_pr_centred")[0]));
  const HeadValues of_nan = values_over_all({q, k * missing, k, q, k});
  EXPECT_TRUE(std::isnan(of_nan.at("qk_pr")[0]) && std::isnan(of_nan.at("k_pr")[0]));
}

// A model without QK-Norm: its keys may be multiplied by any matrix if its queries are by the inverse transpose, and
// every score stays the same.
class Identifiable : public ::testing::Test {
 protected:
  void SetUp() override {
    DecoderConfig config = preset_setup("tiny").model;
    config.qk_norm = false;
    model = make_decoder(config, 5);
    at::manual_seed(3);
    const at::NoGradGuard no_gradients;
    for_each_parameter(model, [&](const std::string&, ParameterKind kind, at::Tensor& value) {
      value = value.detach().to(at::kDouble);
      if (kind == ParameterKind::matrix) value *= 3;  // away from the start
    });
    tokens = at::randint(config.vocabulary, {4, 64}, at::kLong);
  }

  // Keys of all layers times `map`, [d, d], queries times its inverse transpose: by the weights.
  [[nodiscard]] std::vector<HeadValues> values_under(const at::Tensor& map) const {
    const at::NoGradGuard no_gradients;
    const DecoderConfig& c = model.config;
    Decoder mapped = model;
    const at::Tensor inverse = at::linalg_inv(map).mT();
    for (DecoderLayer& layer : mapped.layers) {
      std::vector<at::Tensor> heads = layer.qkv.weight.split(c.d_k, 0);
      for (std::int64_t i = 0; i < c.heads + c.kv_heads; ++i)
        heads[static_cast<std::size_t>(i)] =
            at::matmul(i < c.heads ? inverse : map, heads[static_cast<std::size_t>(i)]);
      layer.qkv.weight = at::cat(heads);
    }
    std::vector<HeadValues> layers;
    observe_heads(mapped, tokens, at::kDouble, c.layers - 1,
                  [&](std::int64_t, const HeadVectors& vectors) { layers.push_back(values_over_all(vectors)); });
    return layers;
  }

  // The largest relative difference of a measure in layer 0: behind it, scores without RoPE's commuting maps differ.
  static double change(const std::vector<HeadValues>& a, const std::vector<HeadValues>& b, const char* metric) {
    return largest_relative_difference(a.front().at(metric), b.front().at(metric));
  }

  Decoder model;
  at::Tensor tokens;
};

TEST_F(Identifiable, QkPrDoesNotChangeUnderInvertibleMapsAndKeyPrDoes) {
  const std::int64_t d = model.config.d_k;
  const auto before = values_under(at::eye(d, at::kDouble));
  for (int i = 0; i < 3; ++i) {
    const auto after = values_under(at::randn({d, d}, at::kDouble));
    EXPECT_LT(change(before, after, "qk_pr"), 1e-6);
    EXPECT_GT(change(before, after, "k_pr"), 1e-2);
    EXPECT_GT(change(before, after, "qk_pr_rotated"), 1e-3);
  }
}

// Such maps commute with RoPE, so the scores of the whole model stay the same, and every layer can be compared.
TEST_F(Identifiable, RotatedQkPrDoesNotChangeUnderScaledRotationsOfPairsAndKeyPrDoes) {
  const std::int64_t d = model.config.d_k;
  const auto before = values_under(at::eye(d, at::kDouble));
  for (int i = 0; i < 3; ++i) {
    const at::Tensor map = at::zeros({d, d}, at::kDouble);
    for (std::int64_t pair = 0; pair < d; pair += 2) {
      const double scale = std::exp(at::randn({}, at::kDouble).item<double>());
      const double angle = 6.28 * at::rand({}, at::kDouble).item<double>();
      map[pair][pair] = map[pair + 1][pair + 1] = scale * std::cos(angle);
      map[pair + 1][pair] = scale * std::sin(angle);
      map[pair][pair + 1] = -scale * std::sin(angle);
    }
    const auto after = values_under(map);
    for (std::size_t layer = 0; layer < before.size(); ++layer) {
      EXPECT_LT(largest_relative_difference(before[layer].at("qk_pr_rotated"), after[layer].at("qk_pr_rotated")), 1e-6);
      EXPECT_LT(largest_relative_difference(before[layer].at("qk_pr"), after[layer].at("qk_pr")), 1e-6);
      EXPECT_GT(largest_relative_difference(before[layer].at("k_pr"), after[layer].at("k_pr")), 1e-3);
      EXPECT_GT(largest_relative_difference(before[layer].at("k_pr_rotated"), after[layer].at("k_pr_rotated")), 1e-3);
    }
  }
}

TEST(Probe, MeasuresOtherRanksWithTheGainsOfTheModel) {
  DecoderConfig config = preset_setup("tiny").model;
  const Decoder model = make_decoder(config, 5);
  {
    const at::NoGradGuard no_gradients;
    for (const DecoderLayer& layer : model.layers) layer.k_gain.copy_(at::exp(at::randn({config.d_k}, at::kFloat)));
  }
  const Batch batch{at::randint(config.vocabulary, {4, 32}, at::kLong), at::zeros({4, 32}, at::kLong)};
  const ProbeResult with_gain = probe_model(model, {batch}, at::kFloat, all_ranks, /*with_loss=*/true);
  {
    const at::NoGradGuard no_gradients;
    model.layers.front().k_gain.fill_(1);
  }
  const ProbeResult without = probe_model(model, {batch}, at::kFloat, all_ranks, /*with_loss=*/false);
  const auto &first = with_gain.layers.front(), &second = without.layers.front();
  EXPECT_EQ(first.size(), 6U);
  EXPECT_GT(largest_relative_difference(first.at("k_pr"), second.at("k_pr")), 0.02);
  // float32 keys times and over the gain
  EXPECT_LT(largest_relative_difference(first.at("k_pr_before_gain"), second.at("k_pr")), 1e-5);
  EXPECT_TRUE(with_gain.gains.k.empty());  // not chosen
  EXPECT_TRUE(with_gain.layers.front().contains("qk_pr_rotated"));
}

// Each is the same whatever is measured beside it.
TEST(Probe, MeasuresOnlyWhatIsChosen) {
  DecoderConfig config = preset_setup("tiny").model;
  const at::Tensor tokens = at::randint(config.vocabulary, {4, 32}, at::kLong);
  for (const bool qk_norm : {true, false}) {
    config.qk_norm = qk_norm;
    const Decoder model = make_decoder(config, 5);
    const auto probe = [&](const std::string& names, bool with_errors) {
      return probe_model(model, {{tokens, tokens}}, at::kFloat, MetricSelection(names, "test"), false, with_errors);
    };
    const HeadValues all = probe("k_pr,other_rank,score_std", false).layers.back();
    for (const char* name : {"k_pr_centred", "k_pr_rotated", "k_pr_before_gain", "qk_pr", "qk_pr_rotated", "score_std"})
      for (const bool with_errors : {false, true}) {
        const ProbeResult one = probe(name, with_errors);
        ASSERT_EQ(one.layers.back().size(), 1U) << name;
        // Sums over tokens in another order.
        EXPECT_LT(largest_relative_difference(one.layers.back().at(name), all.at(name)), 1e-9) << name;
        const bool is_rank = std::string_view(name) != "score_std";
        ASSERT_EQ(one.rank_errors.has_value(), with_errors && is_rank) << name;
        EXPECT_EQ(one.rank_errors.value_or(RankErrors()).mean.size(), one.rank_errors ? 2U : 0U) << name;  // and k_pr
      }
  }
}

TEST(RankErrors, AreTheJackknifeOfTheMeanOverLayers) {
  DecoderConfig config = preset_setup("tiny").model;
  config.layers = 2;
  const Decoder model = make_decoder(config, 5);
  at::manual_seed(4);
  const at::Tensor tokens = at::randint(config.vocabulary, {5, 32}, at::kLong);
  const RankErrors errors = measure_rank_errors(model, tokens, all_ranks);
  ASSERT_EQ(errors.mean.size(), 6U);
  const auto of_probe =
      probe_model(model, {{tokens, tokens}}, at::kFloat, all_ranks, false, /*with_errors=*/true).rank_errors;
  EXPECT_EQ(of_probe->mean, errors.mean);
  EXPECT_EQ(of_probe->layers, errors.layers);
  // The same by probes of batches that lack a sequence.
  std::vector<double> means, of_first_layer;
  for (std::int64_t left_out = 0; left_out < 5; ++left_out) {
    const at::Tensor others = at::cat({tokens.narrow(0, 0, left_out), tokens.narrow(0, left_out + 1, 4 - left_out)});
    const auto layers = probe_model(model, {{others, others}}, at::kFloat, all_ranks, /*with_loss=*/false).layers;
    of_first_layer.push_back(rough_mean(layers[0].at("qk_pr")));
    means.push_back((rough_mean(layers[0].at("qk_pr")) + rough_mean(layers[1].at("qk_pr"))) / 2);
  }
  EXPECT_NEAR(errors.mean.at("qk_pr"), jackknife_error(means), 1e-4 * errors.mean.at("qk_pr"));
  EXPECT_NEAR(errors.layers.at("qk_pr").at(0), jackknife_error(of_first_layer), 1e-4 * errors.mean.at("qk_pr"));
}

}  // namespace
}  // namespace headscope
