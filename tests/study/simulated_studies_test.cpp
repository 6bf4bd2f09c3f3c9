// Studies with known effects, drawn many times: how often each conclusion comes. The seeds of a draw are fixed, so the
// counts are the same everywhere; promised rates leave four standard errors of 2,000 draws.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>

#include "core/missing.h"
#include "core/random.h"
#include "stats/power.h"
#include "study/verdict.h"

namespace headscope {
namespace {

constexpr int draws = 2000;

struct Planted {
  double a, b, c;           // true mean PR
  double deviation = 0.42;  // of a paired difference
  std::size_t seeds = 5;
  std::size_t diverged_of_b = 0;  // of the seeds, the last ones
  double tau = default_tau;
};

// Box and Muller.
double normal(NumpyGenerator& generator) {
  const double radius = std::sqrt(-2 * std::log(1 - generator.uniform()));
  return radius * std::cos(2 * std::numbers::pi * generator.uniform());
}

// Seeds shift all conditions by several PR, as weights and batches do.
Verdict drawn(const Planted& planted, NumpyGenerator& generator) {
  std::vector<ConditionValues> conditions;
  for (const Condition& condition : conditions_with({}))
    conditions.push_back({condition, {}, std::vector<double>(planted.seeds, 90), planted.seeds});
  const double means[] = {planted.a, planted.b, planted.c};
  for (std::size_t seed = 0; seed < planted.seeds; ++seed) {
    const double shift = 3 * normal(generator);
    for (std::size_t i = 0; i < 3; ++i)
      conditions[i].end.push_back(means[i] + shift + planted.deviation / std::numbers::sqrt2 * normal(generator));
    if (seed + planted.diverged_of_b >= planted.seeds) conditions[1].end.back() = missing;
  }
  return decide(std::move(conditions), planted.tau);
}

// Shares of the draws.
struct Rates {
  std::map<Conclusion, double> conclusion;
  std::map<Outcome, double> gamma;
  double any_significant = 0, any_different = 0, wrong_sign = 0;
};

Rates rates_of(const Planted& planted) {
  NumpyGenerator generator(1);
  Rates rates;
  const double one = 1.0 / draws;
  for (int i = 0; i < draws; ++i) {
    const Verdict verdict = drawn(planted, generator);
    rates.conclusion[verdict.conclusion] += one;
    rates.gamma[verdict.find("gamma")->outcome] += one;
    bool significant = false, different = false;
    for (const Effect& effect : verdict.effects) {
      significant = significant || effect.p_holm < significance;
      different = different || effect.is_different();
    }
    rates.any_significant += significant ? one : 0;
    rates.any_different += different ? one : 0;
    const Effect& gamma = *verdict.find("gamma");
    rates.wrong_sign += gamma.is_different() && gamma.difference() * (planted.a - planted.b) < 0 ? one : 0;
  }
  return rates;
}

TEST(SimulatedStudies, ClearEffectsAreFoundWithTheirSigns) {
  const auto rate = [](const Planted& planted, Conclusion conclusion) {
    Rates rates = rates_of(planted);
    EXPECT_EQ(rates.wrong_sign, 0);
    return rates.conclusion[conclusion];
  };
  EXPECT_GT(rate({66, 60, 63}, Conclusion::both), 0.99);
  EXPECT_GT(rate({60, 63, 66}, Conclusion::both), 0.99);
  EXPECT_GT(rate({64, 60, 60}, Conclusion::gamma), 0.95);
  EXPECT_GT(rate({60, 60, 64}, Conclusion::normalisation), 0.95);
  EXPECT_GT(rate({60, 64, 60}, Conclusion::opposed), 0.95);
  EXPECT_GT(rate({60, 60, 60}, Conclusion::none), 0.95);
}

TEST(SimulatedStudies, OneDivergedRunOfFiveLeavesTheConclusion) {
  Rates both = rates_of({.a = 66, .b = 60, .c = 63, .diverged_of_b = 1});
  EXPECT_GT(both.conclusion[Conclusion::both], 0.98);
  Rates too_few = rates_of({.a = 66, .b = 60, .c = 63, .diverged_of_b = 4});
  EXPECT_NEAR(too_few.conclusion[Conclusion::inconclusive], 1, 1e-9);
  EXPECT_NEAR(too_few.gamma[Outcome::undecided], 1, 1e-9);
}

// The promises of the tests: 5 % over a family, and 5 % for an equivalence at the margin.
TEST(SimulatedStudies, ErrorsAreAsRareAsPromised) {
  const double four_errors = 4 * std::sqrt(0.05 * 0.95 / draws);
  for (const double deviation : {0.42, 3.0})
    EXPECT_LT(rates_of({.a = 60, .b = 60, .c = 60, .deviation = deviation}).any_significant, 0.05 + four_errors);
  EXPECT_EQ(rates_of({60, 60, 60}).any_different, 0);
  Rates at_the_margin = rates_of({.a = 61, .b = 60, .c = 60, .deviation = 0.2});
  EXPECT_NEAR(at_the_margin.gamma[Outcome::equivalent], 0.05, four_errors);
  Rates few = rates_of({.a = 60.9, .b = 60, .c = 63, .deviation = 0.6, .seeds = 3});
  EXPECT_LT(few.gamma[Outcome::equivalent], 0.1);
}

TEST(SimulatedStudies, ThePowerIsWhatTheProgramSays) {
  for (const double deviation : {0.42, 0.6})
    for (const std::size_t seeds : {3u, 5u}) {
      const PairedDesign design{.deviation = deviation};
      // B and C differ by much, so Holm's first two steps go to these pairs, and the third to A - B at 5 % ...
      Rates found = rates_of({.a = 61.3, .b = 60, .c = 90, .deviation = deviation, .seeds = seeds});
      const PairedDesign last{.deviation = deviation, .margin = 1, .family = 1};
      const double chance = chance_of_different(last, 1.3, seeds);
      EXPECT_NEAR(found.gamma[Outcome::different], chance, 4 * std::sqrt(chance * (1 - chance) / draws));
      EXPECT_GE(found.gamma[Outcome::different], chance_of_different(design, 1.3, seeds));  // ... the bound
      Rates equal = rates_of({.a = 60, .b = 60, .c = 90, .deviation = deviation, .seeds = seeds});
      const double confirmed = chance_of_equivalent(design, 0, seeds);
      EXPECT_NEAR(equal.gamma[Outcome::equivalent], confirmed, 4 * std::sqrt(confirmed * (1 - confirmed) / draws));
    }
}

}  // namespace
}  // namespace headscope
