#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/json_text.h"
#include "page/budget.h"
#include "page/column.h"
#include "page/formulas.h"
#include "page/html_text.h"
#include "page/levels.h"
#include "page/report_data.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
using ::testing::IsSupersetOf;

std::vector<Moment> every_ten_steps(std::size_t n) {
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < n; ++i)
    moments.push_back({static_cast<std::int64_t>(10 * i), static_cast<std::int64_t>(40960 * i)});
  return moments;
}

TEST(KeptMoments, AreAllWhereTheyFit) {
  EXPECT_EQ(kept_moments(every_ten_steps(3), {}, 300), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(kept_moments({}, {}, 300).empty());
}

TEST(KeptMoments, HoldTheEndsAndTheChangesAndAreAsManyAsAllowed) {
  const std::vector<Moment> moments = every_ten_steps(5000);
  const std::set<std::int64_t> changes = {20010, 20020, 33330};
  const std::vector<std::size_t> kept = kept_moments(moments, changes, 100);
  EXPECT_EQ(kept.size(), 100);
  EXPECT_TRUE(std::ranges::is_sorted(kept));
  EXPECT_EQ(kept.front(), 0);
  EXPECT_EQ(kept.back(), 4999);
  EXPECT_THAT(kept, IsSupersetOf({2001U, 2002U, 3333U}));
  // Half of the rest is evenly spread over tokens: no gap is twice the distance of those.
  for (std::size_t i = 1; i < kept.size(); ++i) EXPECT_LE(kept[i] - kept[i - 1], 2 * 5000 / 45);
  // The other half is dense at the start.
  EXPECT_GE(std::ranges::count_if(kept, [](std::size_t place) { return place < 100; }), 15);
}

TEST(KeptMoments, ManyChangesTakeHalfOfTheRoom) {
  const std::vector<Moment> moments = every_ten_steps(1000);
  std::set<std::int64_t> changes;
  for (std::int64_t i = 500; i < 1000; ++i) changes.insert(10 * i);
  const std::vector<std::size_t> kept = kept_moments(moments, changes, 60);
  EXPECT_EQ(kept.size(), 60);
  EXPECT_GE(std::ranges::count_if(kept, [](std::size_t place) { return place < 500; }), 15);
}

TEST(KeptMoments, GoByUpdatesWhereTokensAreNotKnown) {
  std::vector<Moment> moments = every_ten_steps(1000);
  for (Moment& moment : moments) moment.tokens = 0;
  EXPECT_EQ(kept_moments(moments, {}, 50), kept_moments(every_ten_steps(1000), {}, 50));
}

TEST(Details, GoFromTheMostToTheLeast) {
  const std::vector<Detail> all = details(false, {});
  EXPECT_EQ(all[0].precision.bits, 12);
  EXPECT_EQ(all[1].precision.bits, 10);
  EXPECT_EQ(all[1].moments, 300);
  EXPECT_EQ(all[2].moments, 200);
  EXPECT_EQ(all[3].precision.bits, 8);
  EXPECT_EQ(all[4].moments, 100);
  EXPECT_TRUE(all[4].all_attention);
  EXPECT_FALSE(all[5].all_attention);
  for (const Detail& detail : details(false, 77)) EXPECT_EQ(detail.moments, 77);
  ASSERT_EQ(details(true, {}).size(), 1);
  EXPECT_TRUE(details(true, {})[0].precision.exact);
}

TEST(StepBuckets, HaveTheLastStepAndTheRangeOfTheLoss) {
  std::vector<StepRow> steps;
  for (std::int64_t i = 1; i <= 2500; ++i) steps.push_back({{i, 10 * i}, std::sin(static_cast<double>(i)), 0, 0, 0, 0});
  steps[1234].loss = 99;  // a spike
  steps[1235].loss = missing;
  const std::vector<StepBucket> buckets = step_buckets(steps);
  ASSERT_EQ(buckets.size(), 1000);
  EXPECT_EQ(buckets.back().last.moment.step, 2500);
  std::size_t spikes = 0, row = 0;
  for (const StepBucket& bucket : buckets) {
    double low = INFINITY, high = -INFINITY;
    for (; row < steps.size() && steps[row].moment.step <= bucket.last.moment.step; ++row) {
      if (std::isnan(steps[row].loss)) continue;
      low = std::min(low, steps[row].loss);
      high = std::max(high, steps[row].loss);
    }
    EXPECT_EQ(bucket.loss_min, low);
    EXPECT_EQ(bucket.loss_max, high);
    spikes += bucket.loss_max == 99 ? 1 : 0;
  }
  EXPECT_EQ(spikes, 1);
  EXPECT_EQ(step_buckets({steps.begin(), steps.begin() + 7}).size(), 7);
  EXPECT_TRUE(step_buckets({}).empty());
}

TEST(Escaped, NothingEndsAnElementOrAnAttribute) {
  EXPECT_EQ(escaped("</script><img src=x onerror=alert(1)>"), "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;");
  EXPECT_EQ(escaped("\"'&amp;"), "&quot;&#39;&amp;amp;");
  EXPECT_EQ(escaped("√ ⟨0xE2⟩ 𝛾\n"), "√ ⟨0xE2⟩ 𝛾\n");
}

// The Unicode standard, table 3-7: overlong forms, surrogates, what lies beyond U+10FFFF, sequences that are cut.
TEST(Escaped, BytesThatAreNotUtf8AreReplaced) {
  for (const char* bad :
       {"\xff", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80", "\x01"}) {
    const std::string text = escaped(std::string("a") + bad + "b");
    EXPECT_THAT(text, ::testing::StartsWith("a\xEF\xBF\xBD")) << text;
    EXPECT_THAT(text, ::testing::EndsWith("b")) << text;
    for (const char c : text) EXPECT_NE(c, '\xff');
  }
}

TEST(WithCode, NamesBetweenBackticksAreCode) {
  EXPECT_EQ(with_code("`q_norm` / `k_norm` < 1"), "<code>q_norm</code> / <code>k_norm</code> &lt; 1");
  EXPECT_EQ(with_code("a `lonely one"), "a `lonely one");
  EXPECT_EQ(with_code("`</code><b>`"), "<code>&lt;/code&gt;&lt;b&gt;</code>");
}

TEST(TableHtml, ColumnsOfNumbersAreMarked) {
  const TextTable table{"x",
                        "",
                        {"1", "number", "interval", "mean", "words", "gaps", "none"},
                        {{"7", "−0.5", "−2.91 to +0.32", "1.50 ± 0.20", "4 layers", "–", "–"},
                         {"8", "< 0.001", "–", "1.50 (all equal)", "5", "12,345", "–"}},
                        0};
  const std::string html = table_html(table);
  for (const char* cell : {"number", "interval", "mean", "gaps"})
    EXPECT_THAT(html, ::testing::HasSubstr(fmt::format("<th scope=\"col\" class=\"number\">{}</th>", cell)));
  for (const char* cell : {"words", "none"})
    EXPECT_THAT(html, ::testing::HasSubstr(fmt::format("<th scope=\"col\">{}</th>", cell)));
  EXPECT_THAT(html, ::testing::HasSubstr("<th scope=\"col\">1</th>"));  // names the rows
  EXPECT_THAT(html, ::testing::HasSubstr("<td class=\"number\">1.50 ± 0.20</td>"));
  EXPECT_THAT(html, ::testing::HasSubstr("<td>4 layers</td>"));
}

TEST(Column, AllHaveAsManyDigitsAsTheTypicalOneNeeds) {
  using Texts = std::vector<std::string>;
  EXPECT_EQ(column_text(std::vector{6.31738, 12.5, -0.0004}), (Texts{"6.317", "12.500", "0.000"}));
  EXPECT_EQ(column_text(std::vector{0.0112113, -0.1, missing}), (Texts{"0.01121", "−0.10000", "–"}));
  EXPECT_EQ(column_text(std::vector{0.0112113, 0.02}), (Texts{"0.01121", "0.02000"}));
  EXPECT_EQ(column_text(std::vector{12345.6, 99999.0}), (Texts{"12346", "99999"}));
  EXPECT_EQ(column_text(std::vector{1e-12, 2e-12}), (Texts{"0.000000", "0.000000"}));
  EXPECT_EQ(column_text(std::vector{0.0, missing}), (Texts{"0", "–"}));
  EXPECT_EQ(interval_cell(-0.70041, 0.5, 2), "−0.70 to 0.50");
}

TEST(ScriptJson, MeansTheSameAndEndsNoScript) {
  const ordered_json value = {{"name", "</script><!--\xE2\x80\xA8\xE2\x80\xA9√"}, {"n", 1.5}};
  const std::string text = script_json(value);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(text.find("\xE2\x80\xA8"), std::string::npos);
  EXPECT_EQ(text.find("\xE2\x80\xA9"), std::string::npos);
  EXPECT_EQ(parse_json(text), value);
}

// The bound of a metric is where the score that the roles are given by has its minimum.
TEST(Levels, AHeadAtTheBoundHasTheMinimumOfTheRole) {
  constexpr std::int64_t d_k = 48;
  Baselines baselines;
  for (std::size_t i = 0; i < n_scores; ++i) {
    const auto score = static_cast<Score>(i);
    const RoleDefinition definition{"mine", "test", {{"a_role", {{score, 0.3}}}}};
    const MetricLevels levels = levels_of({.seq_len = 0, .d_k = d_k}, &definition, baselines);
    const auto& of_metric = levels.at(metric_of(score));
    if (score == Score::high_norm || score == Score::low_norm) {
      EXPECT_TRUE(of_metric.empty());
      continue;
    }
    ASSERT_FALSE(of_metric.empty()) << score_name(score);
    EXPECT_TRUE(of_metric.back().role);
    EXPECT_THAT(of_metric.back().text, ::testing::StartsWith("a role "));
    Tracks tracks("probe");
    tracks.counts = {1, 1, 1};
    tracks.moments = {{0, 0}};
    tracks.set(metric_of(score), 0, 0, 0, of_metric.back().value);
    EXPECT_NEAR(scores_at(tracks, 0, d_k)[0][score], 0.3, 1e-15) << score_name(score);
  }
}

TEST(Formulas, EveryMetricHasOne) {
  for (const Metric& metric : head_metrics()) EXPECT_FALSE(formula_of(metric.name).empty()) << metric.name;
  EXPECT_EQ(formula_of("k_pr"), "(Σs)² / Σs²");
  EXPECT_EQ(formula_of("k_max_abs"), "the largest |k_i| of all tokens");
  EXPECT_EQ(formula_of("nothing"), "");
}

}  // namespace
}  // namespace headscope
