#include "plasticity/demo.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::TemporaryFolder;

TEST(PlasticityOfUniform, EqualsTheIntegral) {
  for (const double r : {1e-6, 9e-4, 1.1e-3, 0.1, 1.0, 3.0, 10.0, 40.0}) {
    // Midpoint rule with 200,000 steps of the definition, by the C library's erfc: error about r² / (24 · 4e10).
    const int steps = 200000;
    double sum = 0;
    for (int i = 0; i < steps; ++i) {
      const double x = r * (i + 0.5) / steps;
      const double upper = 0.5 * std::erfc(x / std::sqrt(2.0));
      sum += 4 * upper * (1 - upper);
    }
    EXPECT_NEAR(plasticity_of_uniform(r), sum / steps, 1e-9) << r;
  }
}

// The estimate is unbiased and its standard error is honest: over heads and seeds, (estimate - truth) / error has mean
// near 0 and spread near 1. With 32 values the standard error of the mean is 0.18, of the spread 0.13; bounds at 4 of
// them.
class DemoTruth : public ::testing::TestWithParam<Variant> {};

TEST_P(DemoTruth, EstimatesScatterAroundTheTruthByTheirStandardErrors) {
  const TemporaryFolder folder;
  double sum = 0, squares = 0, count = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    PlasticityOptions options;
    options.variant = GetParam();
    options.seed = seed;
    const Dataset dataset = demo_dataset(folder / std::to_string(seed));
    write_demo(dataset, options);
    for (const DemoRow& row : compare_with_truth(compute_plasticity(options, dataset))) {
      const double error = (row.estimate.value - row.truth) / row.estimate.standard_error();
      EXPECT_LT(std::abs(row.estimate.value - row.truth), 0.06) << row.id.name();
      sum += error;
      squares += error * error;
      ++count;
    }
  }
  EXPECT_EQ(count, 32);
  EXPECT_LT(std::abs(sum / count), 0.72);
  EXPECT_GT(std::sqrt(squares / count), 0.5);
  EXPECT_LT(std::sqrt(squares / count), 1.5);
}

INSTANTIATE_TEST_SUITE_P(Variants, DemoTruth, ::testing::Values(Variant::seed, Variant::diagonal),
                         [](const auto& variant) { return variant.param == Variant::seed ? "seed" : "diagonal"; });

}  // namespace
}  // namespace headscope
