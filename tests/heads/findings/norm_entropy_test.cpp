#include "heads/findings/norm_entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "heads/findings/planted.h"
#include "stats/oracle.h"

namespace headscope {
namespace {

using test::plant;
using test::run_of;
using test::tracks_of;
using ::testing::HasSubstr;

NormEntropy found_in(Tracks tracks) {
  DipTester tester;
  return find_norm_entropy(run_of(std::move(tracks)), tester);
}

TEST(NormEntropy, IsTheRankCorrelationThatScipyHas) {
  for (const auto& one : test::stats_oracle("norm_entropy")) {
    const auto norms = one.at("norm").get<std::vector<double>>(),
               entropies = one.at("entropy").get<std::vector<double>>();
    Tracks tracks = tracks_of({one.at("layers"), one.at("key_heads"), one.at("query_heads")}, 2);
    const auto key_heads = tracks.counts.key_heads, query_heads = tracks.counts.query_heads;
    plant(tracks, "k_norm", [&](std::size_t moment, std::int64_t layer, std::int64_t head) {
      return moment == 0 ? 8 : norms[static_cast<std::size_t>(layer * key_heads + head)];
    });
    plant(tracks, "entropy", [&](std::size_t, std::int64_t layer, std::int64_t head) {
      return entropies[static_cast<std::size_t>(layer * query_heads + head)];
    });
    const NormEntropy found = found_in(tracks);
    EXPECT_NEAR(found.overall.rho, one.at("rho").get<double>(), 1e-12);
    EXPECT_NEAR(found.overall.p_value, one.at("p_value").get<double>(), 1e-11);
    EXPECT_EQ(support_names[static_cast<std::size_t>(*found.high_norm_means_sharp)], one.at("support"));
    ASSERT_EQ(found.layers.size(), one.at("layer_rho").size());
    for (std::size_t layer = 0; layer < found.layers.size(); ++layer)
      EXPECT_NEAR(found.layers[layer].rho, one.at("layer_rho")[layer].get<double>(), 1e-12);
    EXPECT_TRUE(std::isnan(found.rho_over_time[0]));  // all norms alike
    EXPECT_EQ(found.rho_over_time[1], found.overall.rho);
    EXPECT_EQ(found.shared_key_heads, key_heads < query_heads);
    EXPECT_EQ(found.sentence.find("not independent") != std::string::npos, key_heads < query_heads);
  }
}

// Sinks: layer 1, heads 0 to 2 of each 4; the others gather.
Tracks clustered(double distance) {
  Tracks tracks = tracks_of({6, 4, 4}, 1);
  NumpyGenerator generator(5);
  plant(tracks, "k_norm", [&](auto, std::int64_t layer, std::int64_t head) {
    return 5 + (layer == 1 && head < 3 ? distance : 0) + generator.uniform();
  });
  plant(tracks, "entropy", [&](auto, std::int64_t layer, std::int64_t head) {
    return 3 - (layer == 1 && head < 3 ? distance / 3 : 0) + generator.uniform();
  });
  return tracks;
}

TEST(NormEntropy, NamesTheHeadsOfTwoClusters) {
  Tracks tracks = clustered(0);
  // Half of the heads are sinks: norm 12, entropy 0.2.
  plant(tracks, "k_norm", [](auto, std::int64_t layer, std::int64_t head) {
    return (head < 2 ? 12 : 5) + 0.1 * static_cast<double>(layer);
  });
  plant(tracks, "entropy", [](auto, std::int64_t layer, std::int64_t head) {
    return (head < 2 ? 0.2 : 3) + 0.01 * static_cast<double>(layer);
  });
  const NormEntropy found = found_in(tracks);
  ASSERT_TRUE(found.clusters_found());
  ASSERT_EQ(found.high_norm.heads.size(), 12U);
  ASSERT_EQ(found.low_norm.heads.size(), 12U);
  for (const HeadPoint& head : found.high_norm.heads) EXPECT_LT(head.head, 2);
  EXPECT_NEAR(found.high_norm.norm, 12.25, 1e-12);
  EXPECT_NEAR(found.high_norm.entropy, 0.225, 1e-12);
  EXPECT_NEAR(found.low_norm.entropy, 3.025, 1e-12);
  EXPECT_THAT(found.sentence, HasSubstr("two clusters (dip test, p < 0.001): 12 of norm 5.25 and entropy 3.02"));
}

TEST(NormEntropy, FindsNoClustersInACloud) {
  const NormEntropy found = found_in(clustered(0));
  EXPECT_FALSE(found.clusters_found());
  EXPECT_TRUE(found.low_norm.heads.empty() && found.high_norm.heads.empty());
  EXPECT_EQ(found.high_norm_means_sharp, Support::undecided);
  EXPECT_THAT(found.sentence, HasSubstr("do not fall into two clusters"));
}

TEST(NormEntropy, ReadsTheKeyHeadOfAQueryHead) {
  Tracks tracks = tracks_of({1, 2, 4}, 1);
  plant(tracks, "k_norm", [](auto, auto, std::int64_t head) { return head == 0 ? 5.0 : 10.0; });
  plant(tracks, "entropy", [](auto, auto, std::int64_t head) { return head < 2 ? 3.0 : 1.0; });
  EXPECT_EQ(found_in(tracks).overall.rho, -1);
}

TEST(NormEntropy, SaysWhatItCanOfLittle) {
  Tracks one = tracks_of({1, 1, 1}, 1);
  plant(one, "k_norm", [](auto...) { return 8.0; });
  EXPECT_EQ(found_in(one).sentence, "Not answered: entropy was not tracked.");
  EXPECT_EQ(found_in(one).high_norm_means_sharp, std::nullopt);
  plant(one, "entropy", [](auto...) { return 1.0; });
  EXPECT_EQ(found_in(one).high_norm_means_sharp, Support::undecided);
  Tracks unknown = tracks_of({2, 4, 4}, 2);
  plant(unknown, "k_norm", [](auto...) { return NAN; });
  plant(unknown, "entropy", [](auto...) { return NAN; });
  EXPECT_EQ(found_in(unknown).overall.n, 0U);
  EXPECT_FALSE(found_in(unknown).clusters_found());
}

}  // namespace
}  // namespace headscope
