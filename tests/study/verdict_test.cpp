#include "study/verdict.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "study/oracle.h"

namespace headscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Values = std::vector<double>;
const double none = std::nan("");

// Of A, B and C, and of further conditions by tag. The start is 90 everywhere. NaN: the seed has no sound run.
std::vector<ConditionValues> values_of(const std::vector<Values>& main,
                                       const std::map<std::string, Values>& others = {}) {
  std::vector<std::string> tags;
  for (const auto& [tag, values] : others) tags.push_back(tag);
  std::vector<ConditionValues> conditions;
  for (const Condition& condition : conditions_with(tags)) {
    const std::size_t place = conditions.size();
    Values end = place < 3 ? main[place] : others.at(condition.tag);
    const std::size_t runs = end.size();
    end.resize(std::max(main[0].size(), main[1].size()), none);
    conditions.push_back({condition, end, Values(end.size(), 90), runs});
  }
  return conditions;
}

Verdict decided(const std::vector<Values>& main, double tau = default_tau) {
  return decide(values_of(main), tau);
}

struct Case {
  double a, b, c;
  Conclusion conclusion;
  bool kill;
};

// tau = 1 by hand: a difference of exactly 1 counts. Quarters are exact in binary.
const Case cases[] = {
    {66, 60, 60.5, Conclusion::gamma, false},          // A != B ~ C
    {60, 66, 66, Conclusion::gamma, false},            // downwards
    {61, 60, 60.75, Conclusion::inconclusive, false},  // A != B ~ C, but A ~ C
    {60, 60.75, 66, Conclusion::normalisation, true},  // A ~ B != C
    {66, 65.25, 60, Conclusion::normalisation, true},
    {60, 60, 61, Conclusion::normalisation, true},  // at the threshold
    {66, 60, 63, Conclusion::both, false},          // opposite effects
    {66, 63, 60, Conclusion::both, false},          // one after the other
    {60, 66, 60, Conclusion::opposed, false},       // they cancel: A = C
    {60, 66, 60.75, Conclusion::opposed, false},
    {60, 60, 60, Conclusion::none, true},
    {60, 60.75, 60.25, Conclusion::none, true},
    {60, 60.75, 61.5, Conclusion::inconclusive, true},  // A ~ B, B ~ C, but A != C
    {60, 59.25, 58.5, Conclusion::inconclusive, true},
};

TEST(Verdict, OfOneSeedFollowsTheThresholdAndIsDescriptive) {
  for (const Case& one : cases) {
    const Verdict verdict = decided({{one.a}, {one.b}, {one.c}});
    const auto which = fmt::format("A {} B {} C {}", one.a, one.b, one.c);
    EXPECT_EQ(verdict.conclusion, one.conclusion) << which << ": " << verdict.sentence;
    EXPECT_EQ(verdict.kill_criterion, one.kill) << which;
    EXPECT_EQ(verdict.kill_supported, one.kill) << which;
    EXPECT_EQ(verdict.find("gamma")->difference(), one.a - one.b) << which;
    EXPECT_EQ(verdict.find("norm")->difference(), one.b - one.c) << which;
    EXPECT_TRUE(verdict.descriptive) << which;
    EXPECT_EQ(verdict.sentence.find("null result for γ") != std::string::npos, one.kill) << verdict.sentence;
    EXPECT_THAT(verdict.sentence, Not(HasSubstr("\n")));
  }
}

TEST(Verdict, AnotherThresholdGivesAnotherConclusion) {
  EXPECT_EQ(decided({{66}, {60}, {63}}, 2.5).conclusion, Conclusion::both);
  EXPECT_EQ(decided({{66}, {60}, {63}}, 3.5).conclusion, Conclusion::inconclusive);  // A ~ C, B ~ C, A != B
  EXPECT_EQ(decided({{66}, {60}, {63}}, 7).conclusion, Conclusion::none);
}

TEST(Verdict, WithoutAConditionIsInconclusiveButSaysWhatIsKnown) {
  const Verdict without_c = decided({{66}, {60}, {}});
  EXPECT_EQ(without_c.conclusion, Conclusion::inconclusive);
  EXPECT_EQ(without_c.kill_criterion, false);
  EXPECT_EQ(without_c.find("norm"), nullptr);
  EXPECT_THAT(without_c.sentence, HasSubstr("Inconclusive without condition C (NoQK)"));
  EXPECT_THAT(without_c.sentence, HasSubstr("training γ protects rank, A − B = +6.00"));
  const Verdict diverged = decided({{none}, {60}, {63}});  // A was run
  EXPECT_EQ(diverged.conclusion, Conclusion::inconclusive);
  EXPECT_FALSE(diverged.kill_criterion || diverged.kill_supported);
  EXPECT_EQ(diverged.find("gamma")->outcome, Outcome::undecided);
  EXPECT_EQ(diverged.find("gamma")->pairs(), 0u);
  EXPECT_EQ(diverged.find("norm")->difference(), -3);
  EXPECT_EQ(decided({{66}, {}, {63}}).find("total")->difference(), 3);
}

// Every seed has the same differences, but seeds differ by 10: pairing sees it, means do not.
TEST(Verdict, SeedsArePaired) {
  const Verdict verdict = decided({{56, 66.1, 76}, {50.1, 60, 70}, {53, 63.1, 73.1}});
  EXPECT_EQ(verdict.conclusion, Conclusion::both);
  EXPECT_NEAR(verdict.find("gamma")->difference(), 6, 0.01);
  EXPECT_FALSE(verdict.descriptive);
  EXPECT_THAT(verdict.sentence, HasSubstr("3 seeds, paired t tests with Holm's adjustment"));
}

TEST(Verdict, WhatSeedsDoNotShowIsUndecided) {
  // A - B is 6 on average, but -4, 6, 16: not significant.
  const Verdict wide = decided({{56, 66, 76}, {60, 60, 60}, {63, 63, 63}});
  EXPECT_EQ(wide.find("gamma")->outcome, Outcome::undecided);
  EXPECT_EQ(wide.find("gamma")->word(), "undecided");
  EXPECT_EQ(wide.conclusion, Conclusion::inconclusive);
  EXPECT_THAT(wide.sentence, HasSubstr("Inconclusive, A − B is undecided, B − C is different, A − C is undecided"));
  EXPECT_THAT(wide.sentence, HasSubstr("not significant at 5 %: 95 % interval −18.84 to +30.84"));  // 4.3027 * 5.7735
  // Means equal, and not shown to be.
  const Verdict equal = decided({{59, 61}, {60, 60}, {60, 60}});
  EXPECT_EQ(equal.find("gamma")->outcome, Outcome::undecided);
  EXPECT_EQ(equal.kill_criterion, true);
  EXPECT_EQ(equal.kill_supported, false);
  EXPECT_THAT(equal.sentence, HasSubstr("the means alone meet the kill criterion"));
  EXPECT_THAT(equal.sentence, Not(HasSubstr("null result")));
  EXPECT_EQ(decided({{60, 60}, {60, 60}, {60, 60}}).conclusion, Conclusion::none);
  // Significant, but smaller than tau: equivalent.
  const Verdict small = decided({{60.5, 60.5, 60.51}, {60, 60, 60}, {60, 60, 60.01}});
  EXPECT_LT(small.find("gamma")->p_holm, significance);
  EXPECT_EQ(small.conclusion, Conclusion::none);
  EXPECT_EQ(small.kill_supported, true);
  EXPECT_EQ(conclusion_text(small), "none (no difference of at least τ = 1)");
}

// Two seeds of three have both: one pair less; with a single pair nothing is decided.
TEST(Verdict, DivergedRunsLeaveTheirPairsOut) {
  const Verdict verdict = decided({{66, none, 66.1}, {60, 60, 60}, {60, none, none}});
  EXPECT_EQ(verdict.find("gamma")->pairs(), 2u);
  EXPECT_EQ(verdict.find("gamma")->outcome, Outcome::different);
  EXPECT_EQ(verdict.find("norm")->pairs(), 1u);
  EXPECT_EQ(verdict.find("norm")->outcome, Outcome::undecided);
  EXPECT_FALSE(verdict.descriptive);
  EXPECT_EQ(verdict.conclusion, Conclusion::inconclusive);
  EXPECT_THAT(verdict.sentence, HasSubstr("with one pair"));
}

TEST(Verdict, AConditionWhoseRunsAllDivergedHasNoNumber) {
  const Verdict verdict = decided({{none, none}, {60, 60.5}, {63, 63.5}});
  EXPECT_THAT(verdict.sentence, Not(HasSubstr("nan")));
  EXPECT_THAT(verdict.sentence,
              HasSubstr("training γ is not known, no seed has a sound run of both (B 60.25 → A diverged)"));
  EXPECT_EQ(seeds_text(verdict), "0 to 2 seeds");
  const Verdict nothing = decided({{none, none}, {none, none}, {none, none}});
  EXPECT_THAT(nothing.sentence, Not(HasSubstr("nan")));
  EXPECT_THAT(nothing.sentence, HasSubstr("none of 2 seeds with sound runs: nothing is tested"));
  EXPECT_EQ(seeds_text(nothing), "none of 2 seeds");
  EXPECT_EQ(seeds_text(decided({{66, none}, {none, 60}, {63, none}})), "one of 2 seeds");
  EXPECT_EQ(seeds_text(decided({{66}, {60}, {63}})), "one seed");
}

TEST(Verdict, ControlsAreAFamilyOfTheirOwn) {
  const Values a = {60, 60.2, 60.1}, b = {62, 62.3, 62.2}, c = {62, 62.1, 62.3};
  const Verdict alone = decided({a, b, c});
  const Verdict with = decide(values_of({a, b, c}, {{"QK_nodecay", {63, 63.4, 63.3}}, {"mine", {60, 60.1, 60.3}}}));
  EXPECT_EQ(with.find("gamma")->p_holm, alone.find("gamma")->p_holm);
  EXPECT_EQ(with.conclusion, alone.conclusion);
  EXPECT_NEAR(with.find("gamma_learning")->difference(), 3.2 / 3, 1e-9);
  EXPECT_NEAR(with.find("gamma_decay")->difference(), -3.1333333333333, 1e-9);
  EXPECT_EQ(with.find("gamma_decay")->word(), "worsens");
  EXPECT_GT(with.find("gamma_decay")->p_holm, with.find("gamma_decay")->test.p_value);
  EXPECT_NEAR(with.find("mine")->difference(), 0.1 / 3, 1e-9);  // one's own condition is compared with A
  EXPECT_EQ(with.find("gamma_scale"), nullptr);
  EXPECT_EQ(to_json(with).at("mean_pr").at("QK_nodecay"), with.mean_pr(3).mean);
  EXPECT_THAT(with.sentence, HasSubstr(" A − B has two parts: learning γ without decay "));
  EXPECT_THAT(with.sentence, HasSubstr("; decay of γ worsens rank, A − A₀ = −3.13"));
  EXPECT_THAT(decide(values_of({a, b, c}, {})).sentence, Not(HasSubstr("two parts")));
}

TEST(Verdict, PrintsADifferenceOnItsSideOfTau) {
  EXPECT_THAT(decided({{60.996}, {60}, {60}}).sentence, HasSubstr("A − B = +0.996, less than τ = 1"));
  EXPECT_THAT(decided({{59.004}, {60}, {60}}).sentence, HasSubstr("A − B = −0.996, less than τ = 1"));
  EXPECT_THAT(decided({{60}, {60}, {60}}).sentence, HasSubstr("A − B = 0.00, less than τ = 1"));
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

TEST(Verdict, SentenceNamesSignsAndNumbers) {
  EXPECT_EQ(decided({{65.7}, {59.55}, {63.25}}).sentence,
            "Both γ and normalisation change the rank of keys: training γ protects rank, A − B = +6.15 (B 59.55 → A "
            "65.70); normalisation worsens rank, B − C = −3.70 (C 63.25 → B 59.55); τ = 1, one seed: chance is not "
            "estimated.");
  const std::string null_result = decided({{60}, {60.43}, {66}}).sentence;
  EXPECT_THAT(null_result, HasSubstr("Normalisation changes the rank of keys, γ does not"));
  EXPECT_THAT(null_result, HasSubstr("training γ does nothing, A − B = −0.43, less than τ = 1 (B 60.43 → A 60.00), a "
                                     "null result for γ by the kill criterion"));
  const std::string tested = decided({{65.9, 66, 66.1}, {59.9, 60, 60.2}, {62.9, 63, 63.1}}).sentence;
  EXPECT_THAT(tested, HasSubstr("(B 60.03 → A 66.00, p < 0.001)"));
  EXPECT_THAT(decided({{60}, {66}, {60}}).sentence, HasSubstr("opposite ways that cancel"));
}

TEST(Verdict, JsonCarriesTheFieldsAndNullForTheUnknown) {
  const auto one = nlohmann::ordered_json::parse(to_json(decided({{66}, {60}, {}})).dump());
  EXPECT_EQ(one.at("mean_pr").dump(), R"({"A":66.0,"B":60.0,"C":null})");
  EXPECT_EQ(one.at("gamma_effect"), 6.0);
  EXPECT_TRUE(one.at("norm_effect").is_null());
  EXPECT_EQ(one.at("tau"), 1.0);
  EXPECT_EQ(one.at("kill_criterion"), false);
  EXPECT_EQ(one.at("descriptive"), true);
  EXPECT_EQ(one.at("conclusion"), "inconclusive");
  EXPECT_EQ(one.at("collapse").dump(), R"({"QK":24.0,"QK_frozen":30.0})");
  EXPECT_EQ(one.at("effects").dump(),
            R"({"gamma":{"difference":6.0,"collapse_difference":-6.0,"standard_error":null,"low":null,"high":null,)"
            R"("p_value":null,"p_equivalence":null,"p_holm":null,"seeds":1,"outcome":"different","word":"protects"}})");
  EXPECT_FALSE(one.contains("seeds") || one.contains("tests"));
  EXPECT_TRUE(to_json(decided({{}, {60}, {61}})).at("kill_criterion").is_null());
  const auto several = to_json(decided({{65, 67, 66, 66, 66, 66}, {60, 61, 60, 60, 60, 60}, {63, 63, 63, 63, 63, 63}}));
  EXPECT_EQ(several.at("seeds").at("A").at("n"), 6);
  EXPECT_EQ(several.at("seeds").at("A").at("mean"), 66.0);
  EXPECT_TRUE(several.at("effects").at("gamma").at("p_value").is_number());
  EXPECT_EQ(several.at("effects").at("gamma").at("p_sign_flip"), 2.0 / 64);
}

// Random seeds, judged by a Python program with scipy's tests.
TEST(Verdict, OfSeveralSeedsAgreesWithScipy) {
  std::set<std::string> seen;
  for (const auto& one : test::study_oracle("verdict")) {
    const Verdict verdict = decided(one.at("values").get<std::vector<Values>>(), one.at("tau").get<double>());
    std::string outcomes;
    for (const Effect& effect : verdict.effects) outcomes += "DEU"[static_cast<int>(effect.outcome)];
    EXPECT_EQ(outcomes, one.at("outcomes").get<std::string>()) << one.dump();
    EXPECT_EQ(conclusion_name(verdict.conclusion), one.at("conclusion").get<std::string>()) << one.dump();
    EXPECT_EQ(verdict.kill_criterion, one.at("kill").get<bool>()) << one.dump();
    seen.insert(one.at("conclusion").get<std::string>());
  }
  EXPECT_EQ(seen.size(), 6u);  // every conclusion occurs
}

}  // namespace
}  // namespace headscope
