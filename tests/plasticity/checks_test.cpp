// Heads with and without what each check looks for.
#include "plasticity/checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "plasticity/head.h"

namespace headscope {
namespace {

constexpr Eigen::Index planted_dim = 8;

// Queries of the same variance in every direction: the Gaussian model is then exact, whatever the positional direction.
struct Planted {
  double drift = 0;      // of the queries over a text, in deviations, through zero in its middle
  double cluster = 0;    // of four in five queries; the others lie ten times as far on the other side
  double own_topic = 0;  // spread of a text's queries around its own mean
  bool float64 = false;
};

void as_float32(CapturedVectors& captured) {
  for (const double value : captured.vector64) captured.vector32.push_back(static_cast<float>(value));
  captured.vector64.clear();
}

CapturedVectors planted_side(const Planted& planted, Side side, unsigned seed) {
  constexpr std::int64_t texts = 40, length = 64;
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Eigen::VectorXd middle_d(planted_dim), topic_d(planted_dim);
  for (Eigen::Index c = 0; c < planted_dim; ++c)
    middle_d[c] = side == Side::queries ? 0.6 * std::cos(2 * static_cast<double>(c)) : 0;
  CapturedVectors captured;
  captured.dim = planted_dim;
  for (std::int64_t text = 0; text < texts; ++text) {
    for (double& value : topic_d) value = planted.own_topic * normal(random);
    for (std::int64_t position = 0; position < length; ++position) {
      captured.example_id.push_back(text);
      captured.position.push_back(position);
      captured.bucket.push_back(static_cast<std::int64_t>(std::log2(position + 1)));
      const double place = planted.drift * (static_cast<double>(position) / length - 0.5);
      const double apart = planted.cluster * (random() % 5 == 0 ? -10 : 1);
      for (Eigen::Index c = 0; c < planted_dim; ++c) {
        double value = middle_d[c] + topic_d[c] + normal(random);
        if (side == Side::queries && c == 0) value += place;
        if (side == Side::queries && c == 1) value += apart;
        captured.vector64.push_back(value);
      }
    }
  }
  captured.rows = captured.position.size();
  if (!planted.float64) as_float32(captured);
  return captured;
}

HeadResult analyse(const Planted& planted, unsigned seed, Variant variant = Variant::seed) {
  PlasticityOptions options;
  options.variant = variant;
  StageTimes times;
  Keys keys = prepare_keys(planted_side(planted, Side::keys, 2 * seed), options.max_tokens_per_head, options.seed);
  shuffle_keys(keys, options.max_tokens_per_head, options.seed, shuffle_generator(options.seed, 0, 0, Side::keys));
  return analyse_head({}, planted_side(planted, Side::queries, 2 * seed + 1), keys, options, times);
}

constexpr unsigned seeds = 6;

TEST(GaussianGap, IsWithinItsErrorForGaussianQueries) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    const HeadChecks checks = analyse({}, seed).checks;
    EXPECT_LT(std::abs(checks.ap_gap), 3 * checks.ap_gap_se) << seed;
    EXPECT_LT(checks.ap_gap_se, 0.01) << seed;
  }
}

TEST(GaussianGap, ShowsTwoClusters) {
  for (unsigned seed = 0; seed < seeds; ++seed) {
    const HeadChecks checks = analyse({.cluster = 6}, seed).checks;
    EXPECT_GT(checks.ap_gap, 5 * checks.ap_gap_se) << seed;
    EXPECT_GT(checks.ap_gap, 0.05) << seed;
  }
}

TEST(GaussianGap, IsTheDifference) {
  for (const Variant variant : {Variant::seed, Variant::diagonal}) {
    const HeadResult head = analyse({.drift = 1}, 3, variant);
    EXPECT_EQ(head.checks.ap_gap, head.ap_overall - head.checks.ap_empirical);
  }
}

// ap_overall - ap_shuffled, in errors.
double shuffled_difference(const HeadResult& head) {
  return std::abs(head.ap_overall - head.checks.ap_shuffled) / head.checks.ap_shuffled_gap_se;
}

TEST(ShuffledPositions, ChangeNothingWhereVectorsDoNotDependOnPosition) {
  for (unsigned seed = 0; seed < seeds; ++seed) EXPECT_LT(shuffled_difference(analyse({}, seed)), 3) << seed;
}

TEST(ShuffledPositions, TakeAwayWhatPositionDecides) {
  // Keys of one bucket differ little in place, and far queries prefer the later key; without order, places differ a
  // lot.
  for (unsigned seed = 0; seed < seeds; ++seed) EXPECT_GT(shuffled_difference(analyse({.drift = 20}, seed)), 5) << seed;
}

// ap_own_text - ap_other_text, in errors.
double text_difference(const HeadResult& head) {
  return (head.checks.ap_own_text - head.checks.ap_other_text) / head.checks.ap_text_gap_se;
}

TEST(OwnText, IsLikeOthersWhereTextsHaveNothingOfTheirOwn) {
  for (unsigned seed = 0; seed < seeds; ++seed) EXPECT_LT(std::abs(text_difference(analyse({}, seed))), 3) << seed;
}

// Keys that differ along the mean of their own text's queries are told apart by these.
TEST(OwnText, DiffersWhereKeysAnswerToTheirText) {
  PlasticityOptions options;
  StageTimes times;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    const CapturedVectors queries = planted_side({.own_topic = 1.5, .float64 = true}, Side::queries, 2 * seed);
    CapturedVectors captured = planted_side({.float64 = true}, Side::keys, 2 * seed + 1);
    std::map<std::int64_t, Eigen::VectorXd> topic;
    for (std::size_t row = 0; row < queries.rows; ++row) {
      const Eigen::Map<const Eigen::VectorXd> query(queries.vector64.data() + row * queries.dim, planted_dim);
      const auto [entry, is_new] = topic.try_emplace(queries.example_id[row], Eigen::VectorXd::Zero(planted_dim));
      entry->second += query / 64;
    }
    for (std::size_t row = 0; row < captured.rows; ++row) {
      Eigen::Map<Eigen::VectorXd> key(captured.vector64.data() + row * captured.dim, planted_dim);
      key = key[0] * topic.at(captured.example_id[row]) + 0.3 * key;
    }
    Keys keys = prepare_keys(std::move(captured), options.max_tokens_per_head, options.seed);
    shuffle_keys(keys, options.max_tokens_per_head, options.seed, shuffle_generator(0, 0, 0, Side::keys));
    const HeadResult head = analyse_head({}, queries, keys, options, times);
    EXPECT_LT(text_difference(head), -5) << seed;
    EXPECT_GT(head.checks.own_text_pairs, 1000);
  }
}

TEST(HeadChecks, AreMissingWithoutPairsAndErrorsWithOneText) {
  PlasticityOptions options;
  StageTimes times;
  CapturedVectors queries = planted_side({}, Side::queries, 1), captured = planted_side({}, Side::keys, 2);
  std::ranges::fill(queries.example_id, 5);
  std::ranges::fill(captured.example_id, 5);
  Keys keys = prepare_keys(captured, options.max_tokens_per_head, options.seed);
  shuffle_keys(keys, options.max_tokens_per_head, options.seed, shuffle_generator(0, 0, 0, Side::keys));
  const HeadChecks one_text = analyse_head({}, queries, keys, options, times).checks;
  EXPECT_TRUE(std::isfinite(one_text.ap_empirical) && std::isfinite(one_text.ap_shuffled));
  for (const double value : {one_text.ap_gap_se, one_text.ap_shuffled_gap_se, one_text.ap_text_gap_se,
                             one_text.ap_own_text, one_text.ap_other_text})
    EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(one_text.own_text_pairs, 0);
  EXPECT_TRUE(std::isnan(one_text.own_text_queries));

  std::iota(captured.example_id.begin(), captured.example_id.end(), 0);
  keys = prepare_keys(captured, options.max_tokens_per_head, options.seed);
  shuffle_keys(keys, options.max_tokens_per_head, options.seed, shuffle_generator(0, 0, 0, Side::keys));
  const HeadChecks no_pairs = analyse_head({}, queries, keys, options, times).checks;
  EXPECT_TRUE(std::isnan(no_pairs.ap_empirical) && std::isnan(no_pairs.ap_gap) && std::isnan(no_pairs.ap_shuffled));
  EXPECT_TRUE(std::isfinite(no_pairs.ks_d) && std::isfinite(no_pairs.lilliefors_p));
}

TEST(TextSums, ErrorOfAMeanIsTheTextbookOne) {
  TextSums influences;
  const std::vector<double> values = {0.3, 0.9, 0.4, 0.8, 0.1};
  for (std::size_t i = 0; i < values.size(); ++i)
    influences[static_cast<std::int64_t>(10 * i)] += (values[i] - 0.5) / 5;
  EXPECT_NEAR(influences.standard_error(), std::sqrt(0.46 / 4 / 5), 1e-15);  // deviation (n - 1) over root n
  TextSums one;
  one[3] = 1;
  EXPECT_TRUE(std::isnan(one.standard_error()));
}

// Every product in float64, one by one.
BucketQueries::Counts counted_halves(const CapturedVectors& captured, const BucketQueries& bucket,
                                     const RowMajorMatrix& delta_pd, const Queries& queries) {
  BucketQueries::Counts halves_tp = BucketQueries::Counts::Zero(std::ssize(bucket.texts()), delta_pd.rows());
  for (const std::uint32_t row : queries.rows)
    for (Eigen::Index p = 0; p < delta_pd.rows(); ++p) {
      double score = 0;
      for (std::size_t c = 0; c < captured.dim; ++c) {
        const std::size_t at = row * captured.dim + c;
        const double x = captured.vector64.empty() ? static_cast<double>(captured.vector32[at]) : captured.vector64[at];
        score += x * delta_pd(p, static_cast<Eigen::Index>(c));
      }
      const auto text = std::ranges::find(bucket.texts(), captured.example_id[row], &BucketQueries::Text::example_id);
      halves_tp(text - bucket.texts().begin(), p) += score > 0 ? 2 : score == 0 ? 1 : 0;
    }
  return halves_tp;
}

// Sums of their products are exact in float64, so that ties are ties; float32 does not tell which sums are zero.
CapturedVectors few_digits(std::size_t rows, std::size_t dim, double factor, bool float64, unsigned seed) {
  std::mt19937 random(seed);
  CapturedVectors captured;
  captured.dim = dim;
  captured.rows = rows;
  for (std::size_t row = 0; row < rows; ++row) {
    captured.example_id.push_back(static_cast<std::int64_t>(random() % 7));
    captured.position.push_back(static_cast<std::int64_t>(row));
    captured.bucket.push_back(1);
    for (std::size_t c = 0; c < dim; ++c)
      captured.vector64.push_back(factor * (static_cast<double>(random() % 9) - 4 + (random() % 3 == 0 ? 0x1p-20 : 0)));
  }
  if (!float64) as_float32(captured);
  return captured;
}

TEST(BucketQueries, CountAsFloat64Does) {
  struct Case {
    std::size_t rows, dim;
    double factor;
    bool float64;
  };
  for (const auto& [rows, dim, factor, float64] : {Case{1, 1, 1, false},
                                                   {700, 3, 1, false},
                                                   {1100, 17, 0.125, false},
                                                   {333, 128, 1, false},
                                                   {600, 5, 0x1p990, true},
                                                   {600, 5, 0x1p-990, true},
                                                   {520, 4, 1, true},
                                                   {520, 4, 0x1p-100, false}}) {
    const CapturedVectors captured = few_digits(rows, dim, factor, float64, 1);
    const Queries queries = prepare_queries(captured, labels_of(captured),
                                            Eigen::VectorXd::Ones(static_cast<Eigen::Index>(dim)), 1 << 20, 0);
    const CapturedVectors others = few_digits(90, dim, 1, true, 2);
    RowMajorMatrix delta_pd =
        Eigen::Map<const RowMajorMatrix>(others.vector64.data(), 90, static_cast<Eigen::Index>(dim));
    delta_pd.row(7).setZero();
    BucketQueries bucket(captured, queries, queries.buckets[0]);
    const BucketQueries::Counts found_tp = bucket.count_halves(delta_pd);
    EXPECT_EQ(found_tp, counted_halves(captured, bucket, delta_pd, queries)) << rows << " x " << dim << ", " << factor;
    EXPECT_EQ(found_tp.col(7).sum(), static_cast<int>(rows));  // equal keys: one half for each query
    EXPECT_EQ(bucket.count_halves(delta_pd.topRows(3)), found_tp.leftCols(3));
  }
}

TEST(ShuffledLabels, StayWithinTheirTextAndBelongTogether) {
  const CapturedVectors captured = planted_side({}, Side::queries, 1);
  NumpyGenerator generator = shuffle_generator(1, 2, 3, Side::queries), again = generator;
  const ShuffledLabels labels(captured, generator), same(captured, again);
  std::map<std::int64_t, std::multiset<std::pair<std::int64_t, std::int64_t>>> before, after;
  std::size_t moved = 0;
  for (std::size_t row = 0; row < captured.rows; ++row) {
    before[captured.example_id[row]].emplace(captured.position[row], captured.bucket[row]);
    after[captured.example_id[row]].emplace(labels.view().position[row], labels.view().bucket[row]);
    moved += captured.position[row] == labels.view().position[row] ? 0 : 1;
    EXPECT_EQ(labels.view().position[row], same.view().position[row]);
  }
  EXPECT_EQ(before, after);
  EXPECT_GT(moved, captured.rows * 9 / 10);  // one in 64 stays where it is
}

}  // namespace
}  // namespace headscope
