#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/missing.h"
#include "stats/distributions.h"
#include "stats/oracle.h"

namespace headscope {
namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();

// Four roundings, or one step where the result is subnormal.
double tolerance(double expected) {
  return 4 * kEps * expected + std::numeric_limits<double>::denorm_min();
}

double plasticity_at(double z) {
  normal_plasticity({&z, 1}, {&z, 1});
  return z;
}

TEST(Normal, AgreesWithFiftyDigitsInBothTails) {
  double worst = 0;
  for (const auto& row : test::stats_oracle("normal")) {
    const double z = row[0], cdf = row[1], plasticity = row[2];
    EXPECT_NEAR(normal_cdf(z), cdf, tolerance(cdf)) << "z = " << z;
    EXPECT_NEAR(plasticity_at(z), plasticity, tolerance(plasticity)) << "z = " << z;
    if (cdf > 1e-300) worst = std::max(worst, std::fabs(normal_cdf(z) / cdf - 1) / kEps);
    if (plasticity > 1e-300) worst = std::max(worst, std::fabs(plasticity_at(z) / plasticity - 1) / kEps);
  }
  RecordProperty("worst_relative_error_in_eps", std::to_string(worst));
}

TEST(Normal, KnownValues) {
  EXPECT_EQ(normal_cdf(0.0), 0.5);
  EXPECT_EQ(normal_cdf(-0.0), 0.5);
  EXPECT_EQ(plasticity_at(0.0), 1.0);
  EXPECT_EQ(normal_cdf(test::infinity), 1.0);
  EXPECT_EQ(normal_cdf(-test::infinity), 0.0);
  EXPECT_EQ(normal_cdf(1e300), 1.0);
  EXPECT_EQ(normal_cdf(-1e300), 0.0);
  EXPECT_EQ(plasticity_at(test::infinity), 0.0);
  EXPECT_EQ(plasticity_at(-1e10), 0.0);
  EXPECT_TRUE(std::isnan(normal_cdf(missing)));
  EXPECT_TRUE(std::isnan(normal_cdf(-missing)));
  EXPECT_TRUE(std::isnan(plasticity_at(missing)));
}

TEST(Normal, TailsMirrorEachOther) {
  for (double z = 0; z < 9; z += 0.0371) {
    EXPECT_NEAR(normal_cdf(z), 1 - normal_cdf(-z), kEps / 2);  // two roundings to a number in [1/2, 1]
    EXPECT_EQ(plasticity_at(z), plasticity_at(-z));
  }
}

TEST(Normal, ManyAtOnceHaveTheSameBits) {
  std::vector<double> z = {test::infinity, -test::infinity, 0.0, -0.0, 1e300};
  for (double value = -39; value < 39; value += 0.0173) z.push_back(value);
  std::vector<double> cdf(z.size()), plasticity = z;
  normal_cdf(z, cdf);
  normal_plasticity(plasticity, plasticity);  // in place
  for (std::size_t i = 0; i < z.size(); ++i) {
    EXPECT_EQ(cdf[i], normal_cdf(z[i])) << "z = " << z[i];
    EXPECT_EQ(plasticity[i], plasticity_at(z[i])) << "z = " << z[i];
  }
  const std::vector<double> undefined(5, missing);
  std::vector<double> out(5);
  normal_cdf(undefined, out);
  for (const double value : out) EXPECT_TRUE(std::isnan(value));
  EXPECT_THROW(normal_cdf(z, out), Error);
}

}  // namespace
}  // namespace headscope
