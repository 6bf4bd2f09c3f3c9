#include "stats/kolmogorov.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "core/missing.h"
#include "core/random.h"
#include "stats/distributions.h"
#include "stats/oracle.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

// The definition: sort, then the largest deviation just before or at any sample.
double by_definition(std::vector<double> z) {
  std::sort(z.begin(), z.end());
  const auto n = static_cast<double>(z.size());
  double largest = 0;
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double phi = normal_cdf(z[i]);
    const auto rank = static_cast<double>(i);
    largest = std::max({largest, (rank + 1) / n - phi, phi - rank / n});
  }
  return largest;
}

// Nearly normal: the sum of three uniforms, scaled to variance 1.
double nearly_normal(NumpyGenerator& generator) {
  const double a = generator.uniform(), b = generator.uniform(), c = generator.uniform();
  return (a + b + c - 1.5) * 2;
}

using Sampler = std::function<double(NumpyGenerator&)>;

struct Shape {
  const char* name;
  Sampler sample;
};

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all = {
      {"nearly normal", nearly_normal},
      {"normal",
       [](NumpyGenerator& g) {
         return std::sqrt(-2 * std::log1p(-g.uniform())) * std::cos(6.283185307179586 * g.uniform());
       }},
      {"shifted", [](NumpyGenerator& g) { return 0.3 * nearly_normal(g) + 1; }},
      {"heavy-tailed", [](NumpyGenerator& g) { return std::tan(3.14 * (g.uniform() - 0.5)); }},
      {"beyond the bins", [](NumpyGenerator& g) { return g.uniform() < 0.5 ? -9 - g.uniform() : 9 + g.uniform(); }},
      {"huge", [](NumpyGenerator& g) { return (g.uniform() - 0.5) * 1e300; }},
      {"infinite", [](NumpyGenerator& g) { return g.uniform() < 0.1 ? -test::infinity : test::infinity; }},
      {"constant", [](NumpyGenerator&) { return 0.25; }},
      {"two points", [](NumpyGenerator& g) { return g.uniform() < 0.4 ? -1.0 : 0.7; }},
      {"two close points", [](NumpyGenerator& g) { return g.uniform() < 0.4 ? 0.1 : std::nextafter(0.1, 1.0); }},
      {"tied", [](NumpyGenerator& g) { return std::round(4 * nearly_normal(g)) / 4; }},
      {"on bin edges", [](NumpyGenerator& g) { return std::round(512 * nearly_normal(g)) / 512; }},
      {"half lattice",
       [](NumpyGenerator& g) { return g.uniform() < 0.5 ? std::round(nearly_normal(g)) : nearly_normal(g); }},
      {"in one bin", [](NumpyGenerator& g) { return 1e-4 * g.uniform(); }},
  };
  return all;
}

std::vector<double> sample(const Shape& shape, std::size_t n, std::uint64_t seed) {
  NumpyGenerator generator(seed);
  std::vector<double> z(n);
  for (double& value : z) value = shape.sample(generator);
  return z;
}

TEST(KsStatistic, IsExactlyTheDefinition) {
  for (const Shape& shape : shapes()) {
    for (const std::size_t n : {1U, 2U, 3U, 17U, 127U, 128U, 129U, 130U, 500U, 3'000U, 20'000U}) {
      for (std::uint64_t seed = 0; seed < (n < 1000 ? 10 : 3); ++seed) {
        const auto z = sample(shape, n, seed);
        EXPECT_EQ(ks_statistic(z, 0, 1), by_definition(z)) << shape.name << ", n = " << n << ", seed " << seed;
      }
    }
  }
}

TEST(KsStatistic, IsExactlyTheDefinitionForLargeSamples) {
  for (const std::size_t n : {29'999U, 30'001U, 200'001U}) {  // either side of the changes of resolution
    for (const std::size_t shape : {0U, 3U, 10U}) {
      const auto z = sample(shapes()[shape], n, 1);
      EXPECT_EQ(ks_statistic(z, 0, 1), by_definition(z)) << shapes()[shape].name << ", n = " << n;
    }
  }
}

TEST(KsStatistic, StandardisesAsItGoes) {
  for (const std::size_t n : {100U, 20'000U}) {
    auto x = sample(shapes()[0], n, 3);
    for (double& value : x) value = 5 + 2 * value;
    std::vector<double> z = x;
    for (double& value : z) value = (value - 5.01) / 1.99;
    EXPECT_EQ(ks_statistic(x, 5.01, 1.99), ks_statistic(z, 0, 1));
  }
}

TEST(KsStatistic, HasClosedFormsForOneAndTwoSamples) {
  EXPECT_EQ(ks_statistic(std::vector<double>{0.0}, 0, 1), 0.5);
  EXPECT_EQ(ks_statistic(std::vector<double>{1.0}, 0, 1), normal_cdf(1));
  EXPECT_EQ(ks_statistic(std::vector<double>{-1.0, 1.0}, 0, 1), 0.5 - normal_cdf(-1));
  EXPECT_EQ(ks_statistic(std::vector<double>(1000, 0.0), 0, 1), 0.5);
  EXPECT_EQ(ks_statistic(std::vector<double>(1000, 50.0), 0, 1), 1.0);
}

TEST(KsStatistic, OfUndefinedValuesIsUndefined) {
  EXPECT_TRUE(std::isnan(ks_statistic(std::vector<double>{}, 0, 1)));
  for (const std::size_t n : {2U, 100U, 20'000U}) {
    auto z = sample(shapes()[0], n, 0);
    z[n / 2] = missing;
    EXPECT_TRUE(std::isnan(ks_statistic(z, 0, 1))) << n;
    z[n / 2] = -missing;
    EXPECT_TRUE(std::isnan(ks_statistic(z, 0, 1))) << n;
  }
}

TEST(KsStatistic, AgreesWithScipy) {
  for (const auto& oracle : test::stats_oracle("statistic")) {
    const auto z = sample(shapes()[0], oracle["n"].get<std::size_t>(), oracle["seed"].get<std::uint64_t>());
    // scipy's Phi and ours differ by a few roundings
    EXPECT_NEAR(ks_statistic(z, 0, 1), oracle["d"].get<double>(), 1e-15) << "n = " << oracle["n"];
  }
}

TEST(KsSurvival, AgreesWithScipyInEveryBranch) {
  for (const auto& row : test::stats_oracle("survival")) {
    const std::int64_t n = row[0];
    const double d = row[1], expected = row[2];
    EXPECT_NEAR(ks_survival(d, n), expected, 1e-13) << "n = " << n << ", d = " << d;
  }
}

TEST(KsSurvival, KeepsRelativeAccuracyInTheUpperTail) {
  int compared = 0;
  for (const auto& row : test::stats_oracle("survival")) {
    const std::int64_t n = row[0];
    const double d = row[1], expected = row[2];
    // Smirnov's sum; down to where the result loses digits by being subnormal.
    if (static_cast<double>(n) * d * d <= 4 || expected < 1e-300) continue;
    ++compared;
    EXPECT_NEAR(ks_survival(d, n) / expected, 1, 5e-12) << "n = " << n << ", d = " << d << ", p = " << expected;
  }
  EXPECT_GT(compared, 300);
}

TEST(KsSurvival, HasClosedFormsAtTheEnds) {
  EXPECT_EQ(ks_survival(-1, 5), 1);
  EXPECT_EQ(ks_survival(0, 5), 1);
  EXPECT_EQ(ks_survival(0.1, 5), 1);  // D_n is at least 1/(2n)
  EXPECT_EQ(ks_survival(1, 5), 0);
  EXPECT_EQ(ks_survival(test::infinity, 5), 0);
  EXPECT_DOUBLE_EQ(ks_survival(0.75, 1), 0.5);            // 2 (1 - d)
  EXPECT_DOUBLE_EQ(ks_survival(0.4, 2), 1 - 0.5 * 0.36);  // 1 - n!/n^n (2nd - 1)^n
  EXPECT_DOUBLE_EQ(ks_survival(0.9375, 10), 0x1p-39);     // 2 (1 - d)^n
  EXPECT_TRUE(std::isnan(ks_survival(missing, 5)));
  EXPECT_TRUE(std::isnan(ks_survival(0.3, 0)));
}

TEST(KsSurvival, FallsWithoutJumps) {
  for (const std::int64_t n : {5, 60, 140}) {
    double previous = 1;
    for (double d = 0; d < 1; d += 1e-3) {
      const double p = ks_survival(d, n);
      EXPECT_LE(p, previous + 1e-13) << "n = " << n << ", d = " << d;
      previous = p;
    }
  }
}

// D of n normal samples standardised with their own mean and deviation.
std::vector<double> lilliefors_distances(std::size_t n, int samples, std::uint64_t seed) {
  NumpyGenerator generator(seed);
  std::vector<double> distances, x(n);
  for (int i = 0; i < samples; ++i) {
    for (double& value : x) value = shapes()[1].sample(generator);
    const SampleMoments moments = sample_moments(x);
    distances.push_back(ks_statistic(x, moments.mean, std::sqrt(moments.variance())));
  }
  return distances;
}

TEST(LillieforsSurvival, IsTheShareOfNormalSamplesThatAreFarther) {
  for (const auto& [n, samples] : {std::pair<std::size_t, int>{20, 20000}, {100, 10000}, {1000, 3000}}) {
    const std::vector<double> distances = lilliefors_distances(n, samples, n);
    for (const double level : {0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9}) {
      const auto below = std::ranges::count_if(distances, [&, size = static_cast<std::int64_t>(n)](double d) {
        return lilliefors_survival(d, size) <= level;
      });
      // Four deviations of a binomial share, and a twentieth of the level or of its complement for the approximation,
      // twice that for n = 1000, whose sample is small, too.
      const double share = static_cast<double>(below) / samples;
      const double chance = 4 * std::sqrt(level * (1 - level) / samples);
      EXPECT_NEAR(share, level, chance + (n > 100 ? 0.1 : 0.05) * std::min(level, 1 - level))
          << "n = " << n << ", level " << level;
    }
  }
}

TEST(LillieforsSurvival, HasThePublishedCriticalValues) {
  // Lilliefors (1967, J. Am. Stat. Assoc. 62), table 1: n = 20, and sqrt(n) D for n > 30. They come from simulations of
  // a thousand samples: their levels are known to about a fifth.
  EXPECT_NEAR(lilliefors_survival(0.174, 20), 0.1, 0.02);
  EXPECT_NEAR(lilliefors_survival(0.190, 20), 0.05, 0.01);
  EXPECT_NEAR(lilliefors_survival(0.231, 20), 0.01, 0.005);
  for (const std::int64_t n : {50, 100, 1000, 20'000}) {
    const double root = std::sqrt(static_cast<double>(n));
    EXPECT_NEAR(lilliefors_survival(0.805 / root, n), 0.1, 0.025) << n;
    EXPECT_NEAR(lilliefors_survival(0.886 / root, n), 0.05, 0.01) << n;
    EXPECT_NEAR(lilliefors_survival(1.031 / root, n), 0.01, 0.002) << n;
  }
  // Stephens (1974), table 1A: the modified statistic at 15, 10, 5, 2.5 and 1 %.
  for (const auto& [modified, level] :
       {std::pair(0.775, 0.15), {0.819, 0.1}, {0.895, 0.05}, {0.955, 0.025}, {1.035, 0.01}})
    EXPECT_NEAR(lilliefors_survival(modified / (200 - 0.01 + 0.85 / 200), 40'000) / level, 1, 0.15) << level;
}

TEST(LillieforsSurvival, AgreesWithStatsmodels) {
  // statsmodels 0.15, lilliefors(x, pvalmethod="approx"): Dallal and Wilkinson's formula for n <= 100.
  EXPECT_NEAR(lilliefors_survival(0.09715731728586463, 100), 0.02106, 5e-6);
  EXPECT_NEAR(lilliefors_survival(0.08232477163164587, 100), 0.09142, 5e-6);
  // Above 0.1 it interpolates in a table of its own.
  EXPECT_NEAR(lilliefors_survival(0.07787463962096886, 100), 0.15238, 0.015);
  EXPECT_NEAR(lilliefors_survival(0.12059854080500637, 20), 0.61326, 0.015);
  EXPECT_NEAR(lilliefors_survival(0.0034520131787991737, 20'000), 0.79218, 0.03);
}

TEST(LillieforsSurvival, FallsFromOneToZero) {
  for (const std::int64_t n : {5, 20, 100, 101, 1000}) {
    double previous = 1;
    for (double d = 0; d < 1; d += 1e-3) {
      const double p = lilliefors_survival(d, n);
      // The two formulas do not meet exactly at 0.1.
      EXPECT_LE(p, previous + 0.01) << "n = " << n << ", d = " << d;
      EXPECT_GE(p, 0);
      previous = p;
    }
    EXPECT_EQ(lilliefors_survival(0, n), 1);
    EXPECT_LT(previous, 1e-6);
    EXPECT_LT(lilliefors_survival(0.9 / std::sqrt(static_cast<double>(n)), n),
              0.5 * ks_survival(0.9 / std::sqrt(static_cast<double>(n)), n));
  }
  EXPECT_TRUE(std::isnan(lilliefors_survival(missing, 20)));
  EXPECT_TRUE(std::isnan(lilliefors_survival(0.3, 4)));
}

}  // namespace
}  // namespace headscope
