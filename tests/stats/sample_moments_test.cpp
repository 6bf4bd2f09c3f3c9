#include "stats/sample_moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "core/missing.h"
#include "core/random.h"
#include "stats/oracle.h"

namespace headscope {
namespace {

std::vector<double> values_of(const nlohmann::json& oracle) {
  if (oracle.contains("values")) return oracle["values"];
  NumpyGenerator generator(oracle["seed"].get<std::uint64_t>());
  std::vector<double> values(oracle["n"].get<std::size_t>());
  for (double& value : values) {
    const double u = generator.uniform();
    value = u * u;
  }
  return values;
}

// null stands for NaN.
void expect_close(double actual, const nlohmann::json& expected, double relative, const std::string& what) {
  if (expected.is_null()) {
    EXPECT_TRUE(std::isnan(actual)) << what << " is " << actual;
  } else {
    EXPECT_NEAR(actual, expected.get<double>(), relative * std::max(1.0, std::fabs(expected.get<double>()))) << what;
  }
}

TEST(SampleMoments, AgreeWithNumpyAndScipy) {
  for (const auto& oracle : test::stats_oracle("moments")) {
    const std::string name = oracle["name"];
    const auto values = values_of(oracle);
    const SampleMoments m = sample_moments(values);
    // numpy's own rounding of the mean, at an offset of 1e6 deviations, costs it about 1e-10.
    const double relative = name == "offset" ? 1e-9 : 1e-12;
    expect_close(m.mean, oracle["mean"], 1e-14, name + " mean");
    expect_close(m.variance(), oracle["variance"], relative, name + " variance");
    expect_close(m.skewness(), oracle["skewness"], relative, name + " skewness");
    expect_close(m.excess_kurtosis(), oracle["kurtosis"], relative, name + " kurtosis");
    EXPECT_EQ(m.n, values.size());
    expect_close(median(values), oracle["median"], 0, name + " median");
  }
}

TEST(SampleMoments, AreThoseOfAHandComputedSample) {
  const std::vector<double> x = {0, 0, 0, 4};  // mean 1, deviations -1 -1 -1 3
  const SampleMoments m = sample_moments(x);
  EXPECT_EQ(m.mean, 1);
  EXPECT_EQ(m.m2, 3);
  EXPECT_EQ(m.m3, 6);
  EXPECT_EQ(m.m4, 21);
  EXPECT_EQ(m.variance(), 4);
  EXPECT_DOUBLE_EQ(m.skewness(), 2);  // sqrt(12)/2 * 6/3^1.5
  EXPECT_DOUBLE_EQ(m.excess_kurtosis(), 4);
}

TEST(SampleMoments, AConstantColumnHasNoShapeWhateverItsMeanIsRoundedTo) {
  for (const double value : {0.0, 0.1, 1e6 / 3, -7e-300, 1e150}) {
    for (const std::size_t n : {1U, 3U, 100U, 20'000U}) {
      const SampleMoments m = sample_moments(std::vector<double>(n, value));
      EXPECT_EQ(m.mean, value);
      EXPECT_TRUE(std::isnan(m.skewness())) << value << " x " << n;
      EXPECT_TRUE(std::isnan(m.excess_kurtosis())) << value << " x " << n;
    }
  }
}

TEST(SampleMoments, ASingleOutlierHasSkewnessRootNAndKurtosisN) {
  for (const double height : {1e9, 1.0, 1e-13}) {  // the last: close to the limit of a constant column
    std::vector<double> x(21, 1.0);
    x[4] += height;
    const SampleMoments m = sample_moments(x);
    EXPECT_NEAR(m.skewness(), std::sqrt(21.0), 1e-13);
    EXPECT_NEAR(m.excess_kurtosis(), 21, 1e-12);
  }
}

TEST(SampleMoments, UndefinedValuesSpread) {
  const SampleMoments m = sample_moments(std::vector<double>{1, 2, missing, 4});
  for (const double value : {m.mean, m.variance(), m.skewness(), m.excess_kurtosis()}) EXPECT_TRUE(std::isnan(value));
}

// Of the mean of n values it is the standard error of the mean, s/√n: without one, the mean moves by its distance over
// n - 1.
TEST(JackknifeError, OfAMeanIsItsStandardError) {
  const std::vector<double> x = {3, -1, 4, 1, 5, 9, 2.5};
  const auto n = static_cast<double>(x.size());
  const double sum = rough_mean(x) * n;
  std::vector<double> without_one;
  for (const double value : x) without_one.push_back((sum - value) / (n - 1));
  EXPECT_NEAR(jackknife_error(without_one), std::sqrt(sample_moments(x).variance() / n), 1e-14);
  EXPECT_NEAR(jackknife_error(std::vector<double>{2, 6}), 2, 1e-15);  // half of the distance
  EXPECT_TRUE(std::isnan(jackknife_error(std::vector<double>{2})));
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({5, 5, 5, 1}), 5);
  EXPECT_TRUE(std::isnan(median({})));
  for (std::size_t place = 0; place < 4; ++place) {
    std::vector<double> values = {1, 2, 3, 4};
    values[place] = missing;
    EXPECT_TRUE(std::isnan(median(values))) << place;
  }
}

}  // namespace
}  // namespace headscope
