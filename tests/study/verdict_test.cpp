#include "study/verdict.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "study/oracle.h"

namespace headscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Values = std::array<std::vector<double>, n_conditions>;

struct Case {
  double a, b, c;
  Conclusion conclusion;
  bool kill;
};

// tau = 1 by hand: a difference of exactly 1 counts. Quarters are exact in binary.
const Case cases[] = {
    {66, 60, 60.5, Conclusion::gamma, false},          // A != B ~ C
    {60, 66, 66, Conclusion::gamma, false},            // downwards
    {61, 60, 60.75, Conclusion::gamma, false},         // at the threshold; that A ~ C does not matter
    {60, 60.75, 66, Conclusion::normalisation, true},  // A ~ B != C
    {66, 65.25, 60, Conclusion::normalisation, true},
    {60, 60, 61, Conclusion::normalisation, true},  // at the threshold
    {66, 60, 63, Conclusion::both, false},          // opposite effects
    {66, 63, 60, Conclusion::both, false},          // one after the other
    {60, 66, 60, Conclusion::both, false},          // they cancel: A = C
    {60, 60, 60, Conclusion::none, true},
    {60, 60.75, 60.25, Conclusion::none, true},
    {60, 60.75, 61.5, Conclusion::inconclusive, true},  // A ~ B, B ~ C, but A != C
    {60, 59.25, 58.5, Conclusion::inconclusive, true},
};

TEST(Verdict, OfOneSeedFollowsTheThreshold) {
  for (const Case& one : cases) {
    const Verdict verdict = decide(Values{{{one.a}, {one.b}, {one.c}}});
    const auto which = fmt::format("A {} B {} C {}", one.a, one.b, one.c);
    EXPECT_EQ(verdict.conclusion, one.conclusion) << which << ": " << verdict.sentence;
    EXPECT_EQ(verdict.kill_criterion, one.kill) << which;
    EXPECT_EQ(verdict.gamma_effect->test.difference, one.a - one.b) << which;
    EXPECT_EQ(verdict.norm_effect->test.difference, one.b - one.c) << which;
    EXPECT_FALSE(verdict.gamma_effect->tested || verdict.norm_effect->tested) << which;
  }
}

TEST(Verdict, AnotherThresholdGivesAnotherConclusion) {
  EXPECT_EQ(decide(Values{{{66}, {60}, {63}}}, 4).conclusion, Conclusion::gamma);
  EXPECT_EQ(decide(Values{{{66}, {60}, {63}}}, 7).conclusion, Conclusion::none);
  EXPECT_EQ(decide(Values{{{60}, {60.5}, {61}}}, 0.25).conclusion, Conclusion::both);
}

TEST(Verdict, WithoutAConditionIsInconclusiveButSaysWhatIsKnown) {
  const double none = std::nan("");
  const Verdict without_c = decide(Values{{{66}, {60}, {}}});
  EXPECT_EQ(without_c.conclusion, Conclusion::inconclusive);
  EXPECT_EQ(without_c.kill_criterion, false);
  EXPECT_FALSE(without_c.norm_effect.has_value());
  EXPECT_THAT(without_c.sentence, HasSubstr("without condition C (NoQK)"));
  EXPECT_THAT(without_c.sentence, HasSubstr("learning γ raises the mean key PR by 6.00"));
  const Verdict without_a = decide(Values{{{none}, {60}, {63}}});  // a value that is null counts as absent
  EXPECT_EQ(without_a.conclusion, Conclusion::inconclusive);
  EXPECT_FALSE(without_a.kill_criterion.has_value());
  EXPECT_EQ(without_a.norm_effect->test.difference, -3);
  EXPECT_EQ(decide(Values{{{66}, {}, {63}}}).total_effect->test.difference, 3);
  EXPECT_EQ(decide(Values{}).conclusion, Conclusion::inconclusive);
}

TEST(Verdict, WithSeedsAnEffectMustAlsoBeSignificant) {
  // Means 66, 60, 63, but spread so widely that no test can tell them apart.
  const Verdict wide = decide(Values{{{56, 66, 76}, {50, 60, 70}, {53, 63, 73}}});
  EXPECT_EQ(wide.conclusion, Conclusion::inconclusive);
  EXPECT_EQ(wide.kill_criterion, false);
  EXPECT_THAT(wide.sentence, HasSubstr("not significant at 5 %"));
  const Verdict narrow = decide(Values{{{65.9, 66, 66.1}, {59.9, 60, 60.1}, {62.9, 63, 63.1}}});
  EXPECT_EQ(narrow.conclusion, Conclusion::both);
  // One effect is clear, the other reaches tau and is not significant.
  const Verdict mixed = decide(Values{{{65.9, 66, 66.1}, {59.9, 60, 60.1}, {53, 63, 73}}});
  EXPECT_EQ(mixed.conclusion, Conclusion::gamma);
  EXPECT_THAT(mixed.sentence, HasSubstr("for normalisation none is established"));
  // Significant, but smaller than tau.
  const Verdict small = decide(Values{{{60.5, 60.5, 60.51}, {60, 60, 60.01}, {60, 60, 60.01}}});
  EXPECT_TRUE(small.gamma_effect->significant());
  EXPECT_EQ(small.conclusion, Conclusion::none);
  EXPECT_EQ(small.kill_criterion, true);
}

// Two seeds each, all means 60: the seeds scatter by more than tau, so a difference of tau is not excluded.
TEST(Verdict, IsInconclusiveWhereIntervalsAreWiderThanTau) {
  const Verdict wide = decide(Values{{{59, 61}, {58.5, 61.5}, {59.25, 60.75}}});
  EXPECT_EQ(wide.conclusion, Conclusion::inconclusive);
  EXPECT_EQ(wide.kill_criterion, true);
  // A - B: s^2/n = 1 and 2.25, se = sqrt(3.25), df = 3.25^2 / (1 + 2.25^2) = 1.742268; t(0.975, df) by scipy = 4.9729.
  EXPECT_NEAR(wide.gamma_effect->test.high, 4.9729 * std::sqrt(3.25), 0.01);
  EXPECT_THAT(wide.sentence, HasSubstr("Inconclusive, the seeds scatter too much to exclude a difference of τ = 1:"));
  EXPECT_THAT(wide.sentence, HasSubstr("less than τ = 1, but the 95 % interval, −8.9"));
  EXPECT_THAT(wide.sentence, HasSubstr("the means alone meet the kill criterion"));
  EXPECT_THAT(wide.sentence, Not(HasSubstr("null result")));
  EXPECT_EQ(conclusion_text(wide), "inconclusive");
  // The same scatter, a hundredth of it.
  const Verdict narrow = decide(Values{{{59.99, 60.01}, {59.985, 60.015}, {59.9925, 60.0075}}});
  EXPECT_EQ(narrow.conclusion, Conclusion::none);
  EXPECT_EQ(conclusion_text(narrow), "none (no difference of at least τ = 1)");
  EXPECT_THAT(narrow.sentence, HasSubstr("a null result for γ by the kill criterion"));
  // The norm effect is clear; that gamma has none is not.
  const Verdict norm = decide(Values{{{59, 61}, {59.9, 60.1}, {49.9, 50.1}}});
  EXPECT_EQ(norm.conclusion, Conclusion::normalisation);
  EXPECT_THAT(norm.sentence, HasSubstr("Normalisation makes a difference, for γ none is established"));
  // Without any spread the interval is the difference.
  EXPECT_EQ(decide(Values{{{60, 60}, {60, 60}, {60, 60}}}).conclusion, Conclusion::none);
}

TEST(Verdict, PrintsADifferenceOnItsSideOfTau) {
  EXPECT_THAT(decide(Values{{{60.996}, {60}, {60}}}).sentence, HasSubstr("by +0.996, less than τ = 1"));
  EXPECT_THAT(decide(Values{{{59.004}, {60}, {60}}}).sentence, HasSubstr("by −0.996, less than τ = 1"));
  EXPECT_THAT(decide(Values{{{60}, {60}, {60}}}).sentence, HasSubstr("by 0.00, less than τ = 1"));
}

TEST(MeanText, HasDigitsForItsHalf) {
  const auto of = [](std::vector<double> values, int digits) { return mean_text(mean_interval(values), digits); };
  EXPECT_EQ(of({}, 2), "-");
  EXPECT_EQ(of({65.7}, 2), "65.70");
  // s = 0.1 sqrt(2) / sqrt(2) = 0.1, t(0.975, 1) = 12.706.
  EXPECT_EQ(of({65.6, 65.8}, 2), "65.70 ± 1.27");
  EXPECT_EQ(of({3.97100, 3.97102}, 3), "3.9710 ± 0.0001");  // 12.706 * 0.00001
  EXPECT_EQ(of({3.971, 3.971}, 3), "3.971 (all equal)");
}

TEST(Verdict, WhereAConditionHasOneSeedTheThresholdDecides) {
  const Verdict verdict = decide(Values{{{66}, {59.9, 60, 60.1}, {62.9, 63, 63.1}}});
  EXPECT_FALSE(verdict.gamma_effect->tested);
  EXPECT_TRUE(verdict.norm_effect->tested);
  EXPECT_EQ(verdict.conclusion, Conclusion::both);
}

TEST(Verdict, SentenceSaysWhatWasFoundWithNumbers) {
  EXPECT_EQ(decide(Values{{{65.7}, {59.55}, {63.25}}}).sentence,
            "Both γ and normalisation contribute: learning γ raises the mean key PR by 6.15 (B 59.55 → A 65.70); "
            "normalisation lowers the mean key PR by 3.70 (C 63.25 → B 59.55); "
            "τ = 1, one seed: chance is not estimated.");
  const std::string null_result = decide(Values{{{60}, {60.43}, {66}}}).sentence;
  EXPECT_THAT(null_result, HasSubstr("Normalisation drives the difference, γ does not"));
  EXPECT_THAT(null_result,
              HasSubstr("by −0.43, less than τ = 1 (B 60.43 → A 60.00), a null result for γ by the kill criterion"));
  const std::string tested = decide(Values{{{65.9, 66, 66.1}, {59.9, 60, 60.1}, {62.9, 63, 63.1}}}).sentence;
  EXPECT_THAT(tested, HasSubstr("(B 60.00 → A 66.00, p < 0.001)"));
  EXPECT_THAT(tested, HasSubstr("3 seeds per condition, Welch's test at 5 %"));
}

TEST(Verdict, TheKillCriterionIsSaidPlainlyAndOnlyThen) {
  for (const Case& one : cases) {
    const std::string sentence = decide(Values{{{one.a}, {one.b}, {one.c}}}).sentence;
    EXPECT_EQ(sentence.find("null result for γ") != std::string::npos, one.kill) << sentence;
    EXPECT_THAT(sentence, Not(HasSubstr("\n")));
  }
}

TEST(Verdict, JsonCarriesTheFieldsAndNullForTheUnknown) {
  const auto one = to_json(decide(Values{{{66}, {60}, {}}}));
  EXPECT_EQ(one.at("mean_pr").dump(), R"({"A":66.0,"B":60.0,"C":null})");
  EXPECT_EQ(one.at("gamma_effect"), 6.0);
  EXPECT_TRUE(one.at("norm_effect").is_null());
  EXPECT_EQ(one.at("tau"), 1.0);
  EXPECT_EQ(one.at("kill_criterion"), false);
  EXPECT_EQ(one.at("conclusion"), "inconclusive");
  EXPECT_FALSE(one.contains("seeds") || one.contains("tests"));
  EXPECT_TRUE(to_json(decide(Values{{{}, {60}, {61}}})).at("kill_criterion").is_null());
  const auto several = to_json(decide(Values{{{65, 67}, {60, 61}, {63}}}));
  EXPECT_EQ(several.at("seeds").at("A").at("n"), 2);
  EXPECT_EQ(several.at("seeds").at("A").at("mean"), 66.0);
  EXPECT_TRUE(several.at("tests").at("gamma_effect").at("p_value").is_number());
  EXPECT_THAT(several.at("tests").at("norm_effect").dump(), HasSubstr("\"p_value\":null"));
}

// Random seeds, judged by a Python program with scipy's test.
TEST(Verdict, OfSeveralSeedsAgreesWithScipy) {
  std::map<std::string, int> seen;
  for (const auto& one : test::study_oracle("verdict")) {
    const Verdict verdict = decide(one.at("values").get<Values>(), one.at("tau").get<double>());
    EXPECT_EQ(conclusion_name(verdict.conclusion), one.at("conclusion").get<std::string>()) << one.dump();
    EXPECT_EQ(verdict.kill_criterion, one.at("kill").get<bool>()) << one.dump();
    ++seen[one.at("conclusion").get<std::string>()];
  }
  EXPECT_EQ(seen.size(), 5u);  // every conclusion occurs
}

}  // namespace
}  // namespace headscope
