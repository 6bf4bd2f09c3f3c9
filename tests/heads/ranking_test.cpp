#include "heads/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "support/expect_error.h"

namespace headscope {
namespace {

using test::expect_error;
using ::testing::HasSubstr;

// Uniform causal attention as a matrix, and the measurements of docs/measurements.md written out over it.
struct Uniform {
  explicit Uniform(int rows)
      : n(rows), a(static_cast<std::size_t>(rows), std::vector<double>(static_cast<std::size_t>(rows))) {
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j <= i; ++j) a[i][j] = 1.0 / static_cast<double>(i + 1);
  }
  static double entropy(const std::vector<double>& row) {
    double sum = 0;
    for (const double p : row) sum -= p > 0 ? p * std::log(p) : 0;
    return sum;
  }
  template <class Value>
  double mean(std::size_t first, Value value) const {
    double sum = 0;
    for (std::size_t i = first; i < a.size(); ++i) sum += value(i);
    return sum / static_cast<double>(a.size() - first);
  }
  int n;
  std::vector<std::vector<double>> a;
};

TEST(Baseline, OfUniformAttentionIsThatOfTheMatrix) {
  const Uniform uniform(200);
  const auto value = [](const char* metric) { return baseline_of(metric, {200, 32})->value; };
  const double entropy = uniform.mean(0, [&](std::size_t i) { return Uniform::entropy(uniform.a[i]); });
  EXPECT_NEAR(value("entropy"), entropy, 1e-12);
  EXPECT_NEAR(value("sink"), uniform.mean(1, [&](std::size_t i) { return uniform.a[i][0]; }), 1e-12);
  EXPECT_NEAR(value("previous"), uniform.mean(1, [&](std::size_t i) { return uniform.a[i][i - 1]; }), 1e-12);
  EXPECT_NEAR(value("self"), uniform.mean(0, [&](std::size_t i) { return uniform.a[i][i]; }), 1e-12);
  std::vector<double> mean_row(200);
  for (const auto& row : uniform.a)
    for (std::size_t j = 0; j < row.size(); ++j) mean_row[j] += row[j] / 200;
  const double of_mean = Uniform::entropy(mean_row);
  EXPECT_NEAR(value("constancy"), 1 - (of_mean - entropy) / of_mean, 1e-12);
  const Uniform twice(128);
  double induction = 0;
  for (std::size_t i = 0; i < 64; ++i) induction += twice.a[64 + i][i + 1] / 64;
  EXPECT_NEAR(value("induction"), induction, 1e-12);
  EXPECT_NEAR(value("previous_random"), induction, 1e-12);  // uniform attention is the same everywhere in a row
  EXPECT_EQ(value("entropy_norm"), 1);
  EXPECT_NEAR(baseline_of("sink", {256, 0})->value, 0.0201, 5e-5);
}

// max|x| / |x| and |x| of a Gaussian vector are independent, so the mean of the quotient is that of max|x| over that of
// |x|; E max|x| is the integral of 1 - erf(t / sqrt 2)^d. In two dimensions the participation ratio is 1 / (1 -
// sin^2(2a) / 2) at the angle a, whose mean is the root of 2.
TEST(Baseline, OfGaussianKeysIsThatOfTheClosedForms) {
  const int d = 32;
  double largest = 0;
  for (double t = 5e-4; t < 12; t += 1e-3) largest += 1e-3 * (1 - std::pow(std::erf(t / std::sqrt(2)), d));
  const double norm = std::sqrt(2) * std::exp(std::lgamma((d + 1) / 2.0) - std::lgamma(d / 2.0));
  EXPECT_NEAR(baseline_of("k_axis", {0, d})->value, largest / norm, 0.01 * largest / norm);
  EXPECT_NEAR(baseline_of("k_pr_vector", {0, 2})->value, std::sqrt(2), 0.015);
  EXPECT_NEAR(baseline_of("k_pr", {0, d})->value, d, 1e-3);
  EXPECT_EQ(baseline_of("k_cosine", {})->value, 0);
  EXPECT_FALSE(baseline_of("k_norm", {256, 32}));
  EXPECT_FALSE(baseline_of("sink", {0, 32}));
}

// Means over draws by NumPy (200 of standard_normal((n, d)), its singular values and sums). The laws hold for large n
// and d: three percent here.
TEST(Baseline, OfFewGaussianKeysIsThatOfDraws) {
  struct Case {
    std::int64_t n, d;
    double pr, erank, pr_eig, stable_rank, top_energy, top_share;
  };
  for (const Case& one : {Case{64, 32, 27.76, 29.58, 21.18, 11.80, 0.0440, 0.0666},
                          Case{512, 32, 31.48, 31.74, 30.07, 21.14, 0.0354, 0.0410},
                          Case{16, 64, 14.94, 15.43, 12.69, 7.81, 0.0318, 0.0781}}) {
    const auto value = [&](std::string_view metric) { return baseline_of(metric, {0, one.d, one.n})->value; };
    EXPECT_NEAR(value("k_pr"), one.pr, 0.03 * one.pr);
    EXPECT_NEAR(value("k_erank"), one.erank, 0.03 * one.erank);
    EXPECT_NEAR(value("k_pr_eig"), one.pr_eig, 0.03 * one.pr_eig);
    EXPECT_NEAR(value("k_stable_rank"), one.stable_rank, 0.1 * one.stable_rank);  // the edge is smeared out
    EXPECT_NEAR(value("k_top_energy"), one.top_energy, 0.03 * one.top_energy);
    EXPECT_NEAR(value("k_top_share"), one.top_share, 0.05 * one.top_share);
  }
}

// Means over 60 draws by NumPy of standard_normal((n, d)) for queries and keys: singular values of K less its mean, and
// of R of Q times Rᵀ of K. Few vectors are far from the law for the first, three percent here; the second is drawn,
// too.
TEST(Baseline, OfOtherRanksIsThatOfDraws) {
  struct Case {
    std::int64_t n, d;
    double centred, product, product_error;
  };
  for (const Case& one : {Case{4096, 32, 31.936, 31.872, 0.01}, Case{200, 32, 30.65, 29.38, 0.15},
                          Case{1000, 64, 62.95, 61.93, 0.1}, Case{20, 32, 15.99, 12.38, 0.4}}) {
    const auto value = [&](std::string_view metric) { return baseline_of(metric, {0, one.d, one.n})->value; };
    EXPECT_NEAR(value("k_pr_centred"), one.centred, 0.03 * one.centred);
    EXPECT_EQ(value("k_pr_rotated"), value("k_pr"));
    EXPECT_EQ(value("k_pr_before_gain"), value("k_pr"));
    EXPECT_LT(value("k_pr_centred"), value("k_pr"));
    EXPECT_NEAR(value("qk_pr"), one.product, one.product_error);  // some errors of the mean of the draws
    EXPECT_EQ(value("qk_pr_rotated"), value("qk_pr"));
  }
}

TEST(Baseline, IsTheSameWhenItIsAskedForAgain) {
  Baselines baselines;
  for (const BatchShape& shape : {BatchShape{256, 32, 4096}, BatchShape{256, 16, 4096}, BatchShape{0, 16, 64}})
    for (int i = 0; i < 2; ++i)
      for (const Metric& metric : head_metrics()) {
        const auto found = baselines.of(metric.name, shape), expected = baseline_of(metric.name, shape);
        ASSERT_EQ(found.has_value(), expected.has_value()) << metric.name;
        if (!expected) continue;
        EXPECT_EQ(found->value, expected->value) << metric.name;
        EXPECT_EQ(found->of, expected->of) << metric.name;
      }
}

RunTracks tracks_of(const std::vector<std::vector<double>>& of_heads) {  // [head][moment], two heads a layer
  RunTracks tracks;
  tracks.probe.counts = {static_cast<std::int64_t>(of_heads.size()) / 2, 1, 2};
  for (std::size_t moment = 0; moment < of_heads[0].size(); ++moment)
    tracks.probe.moments.push_back({static_cast<std::int64_t>(moment) * 10, static_cast<std::int64_t>(moment) * 1000});
  for (std::size_t head = 0; head < of_heads.size(); ++head)
    for (std::size_t moment = 0; moment < of_heads[head].size(); ++moment)
      tracks.probe.set("sink", moment, static_cast<std::int64_t>(head / 2), static_cast<std::int64_t>(head % 2),
                       of_heads[head][moment]);
  return tracks;
}

TEST(Ranking, IsByTheValueAtTheStepAskedFor) {
  const RunTracks tracks = tracks_of({{0.1, 0.2, 0.3}, {0.5, 0.4, 0.1}, {0.02, 0.02, 0.02}, {0.2, 0.6, 0.9}});
  const Ranking last = rank_heads(tracks, {256, 32}, {.by = "sink", .top = 3});
  ASSERT_EQ(last.ranked.size(), 3U);
  EXPECT_EQ(last.ranked[0].name(), "L1H1");
  EXPECT_EQ(last.ranked[0].since, 10);
  const RunTracks settled = tracks_of({{0.1, 0.1, 0.1, 0.1, 0.1}, {0.2, 0.6, 0.9, 0.9, 0.9}});
  EXPECT_EQ(rank_heads(settled, {256, 32}, {.by = "sink"}).ranked[0].since, 10);  // half of the way is 0.55
  EXPECT_EQ(last.ranked[1].name(), "L0H0");
  EXPECT_NEAR(last.ranked[0].error, std::sqrt((0.16 + 0.09) / 2 / 2), 1e-12);
  EXPECT_EQ(rank_heads(tracks, {256, 32}, {.by = "sink", .step = 9}).ranked[0].name(), "L0H1");
  EXPECT_EQ(rank_heads(tracks, {256, 32}, {.by = "sink", .lowest = true}).ranked[0].name(), "L1H0");
  EXPECT_EQ(rank_heads(tracks, {256, 32}, {.by = "sink", .layer = 0}).heads, 2U);
}

TEST(Ranking, SaysThatNoHeadIsBeyondUniformAttention) {
  const RunTracks tracks = tracks_of({{0.020, 0.0201, 0.0202}, {0.0199, 0.0202, 0.0201}});
  const Ranking ranking = rank_heads(tracks, {256, 32}, {.by = "sink"});
  EXPECT_EQ(ranking.above + ranking.below, 0U);
  EXPECT_THAT(to_terminal(ranking), HasSubstr("uniform attention gives 0.0201; beyond it by 5 % or more and by more "
                                              "than twice their ±: 0 of 2 heads above, 0 below"));
  const Ranking steady =
      rank_heads(tracks_of({{0.3, 0.31, 0.31, 0.31}, {0.02, 0.02, 0.02, 0.02}}), {256, 32}, {.by = "sink"});
  EXPECT_EQ(steady.above, 1U);
  EXPECT_EQ(steady.below, 0U);
  EXPECT_THAT(to_terminal(steady),
              HasSubstr("1 of 2 heads have 0.3000 or more, as the role static_sink asks; it has "));
  EXPECT_THAT(to_terminal(rank_heads(tracks_of({{0.5, 0.5}, {0.02, 0.02}}), {256, 32}, {.by = "sink"})),
              HasSubstr("fewer than three measurements do not tell how much a value moves: heads are not counted"));
}

TEST(Ranking, ByChangeCountsInUnitsOfTheSpreadOverHeads) {
  const Ranking ranking = rank_heads(tracks_of({{0, 0, 2}, {0, 1, 1}, {0, 0, 0}, {0, 0, 0}}), {}, {});
  ASSERT_EQ(ranking.ranked.size(), 4U);
  EXPECT_EQ(ranking.ranked[0].name(), "L0H0");
  // 0 0 0 0 and 2 1 0 0: mean 3/8, mean square 5/8.
  EXPECT_NEAR(ranking.ranked[0].score, 2 / std::sqrt(5.0 / 8 - 9.0 / 64), 1e-12);
  EXPECT_EQ(ranking.ranked[0].since, std::nullopt);  // a way of 2, ± 1
  EXPECT_EQ(ranking.ranked[1].since, std::nullopt);  // a way of 1, ± 0.5
  EXPECT_THAT(to_terminal(ranking), HasSubstr("heads that changed most, step 0 to 20"));
  const Ranking least = rank_heads(tracks_of({{0, 0, 2}, {0, 1, 1}, {0, 0, 0}, {0, 0, 0}}), {}, {.lowest = true});
  EXPECT_THAT(to_terminal(least), HasSubstr("heads that changed least"));
  EXPECT_EQ(least.ranked.back().name(), "L0H0");
}

// A share of 0 is no limit, and without an error nothing is said of it.
TEST(Ranking, SaysOnlyTheLimitsThatItUses) {
  RunTracks tracks = tracks_of({{0.1, 0.1, 0.1}, {0.2, 0.2, 0.2}});
  for (std::size_t moment = 0; moment < 3; ++moment)
    for (const std::int64_t head : {0, 1}) tracks.probe.set("max_logit", moment, 0, head, 3);
  EXPECT_THAT(
      to_terminal(rank_heads(tracks, {256, 32}, {.by = "max_logit"})),
      HasSubstr("uniform attention gives 0.0000; beyond it by more than twice their ±: 2 of 2 heads above, 0 below\n"));
  EXPECT_THAT(to_terminal(rank_heads(tracks, {}, {.by = "sink"})), HasSubstr("the run does not say its train.seq_len"));
}

TEST(Ranking, WhatIsNotThereIsRefused) {
  const RunTracks tracks = tracks_of({{0.1}, {0.2}});
  expect_error(Fault::input, "unknown metric 'snik'; did you mean 'sink'?",
               [&] { rank_heads(tracks, {}, {.by = "snik"}); });
  expect_error(Fault::input, "entropy was not measured", [&] { rank_heads(tracks, {}, {.by = "entropy"}); });
  expect_error(Fault::input, "one measurement shows no change", [&] { rank_heads(tracks, {}, {}); });
  expect_error(Fault::input, "--layer 7: the run has layers 0 to 0",
               [&] { rank_heads(tracks, {}, {.by = "sink", .layer = 7}); });
  expect_error(Fault::input, "--source other", [&] { rank_heads(tracks, {}, {.by = "sink", .source = "other"}); });
}

}  // namespace
}  // namespace headscope
