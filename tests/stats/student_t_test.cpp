#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "core/missing.h"
#include "stats/distributions.h"
#include "stats/oracle.h"
#include "study/oracle.h"

namespace headscope {
namespace {

// The continued fraction loses up to df eps (1e-12 at df = 10^4); the tails are exponentials of numbers up to 700.
constexpr double kRelative = 2e-12;

TEST(StudentT, AgreesWithScipyOnBothSides) {
  for (const auto& row : test::study_oracle("student_t")) {
    const double t = row[0], df = row[1], cdf = row[2];
    EXPECT_NEAR(student_t_cdf(t, df), cdf, kRelative * cdf + 1e-300) << "t = " << t << ", df = " << df;
  }
}

TEST(StudentT, AgreesWithFiftyDigitsInFarTails) {
  for (const auto& row : test::study_oracle("tail")) {
    const double t = row[0], df = row[1], tail = row[2];
    EXPECT_NEAR(student_t_two_sided(t, df), tail, kRelative * tail) << "t = " << t << ", df = " << df;
    EXPECT_EQ(student_t_two_sided(-t, df), student_t_two_sided(t, df));
  }
}

TEST(StudentT, HasItsClosedFormsForOneAndTwoDegrees) {
  for (const double t : {-30.0, -2.0, -0.1, 0.0, 0.7, 1.0, 12.0}) {
    EXPECT_NEAR(student_t_cdf(t, 1), 0.5 + std::atan(t) / std::numbers::pi, 1e-15);
    EXPECT_NEAR(student_t_cdf(t, 2), 0.5 + t / (2 * std::sqrt(2 + t * t)), 1e-15);
  }
  for (const double p : {0.01, 0.4, 0.975, 0.9999}) {
    const double one = std::tan(std::numbers::pi * (p - 0.5));
    const double two = (2 * p - 1) * std::sqrt(2 / (4 * p * (1 - p)));
    EXPECT_NEAR(student_t_quantile(p, 1), one, 1e-11 * std::fabs(one));  // p - 1/2 is rounded
    EXPECT_NEAR(student_t_quantile(p, 2), two, 1e-11 * std::fabs(two));
  }
}

TEST(StudentT, QuantilesAgreeWithScipyAndInvertTheDistribution) {
  for (const auto& row : test::study_oracle("quantile")) {
    const double p = row[0], df = row[1], t = row[2];
    EXPECT_NEAR(student_t_quantile(p, df), t, 1e-10 * std::fabs(t)) << "p = " << p << ", df = " << df;
    EXPECT_NEAR(student_t_cdf(student_t_quantile(p, df), df), p, kRelative) << "p = " << p << ", df = " << df;
  }
}

TEST(StudentT, EdgesAreDefined) {
  EXPECT_EQ(student_t_cdf(0, 3), 0.5);
  EXPECT_EQ(student_t_quantile(0.5, 3), 0);
  EXPECT_EQ(student_t_cdf(test::infinity, 3), 1);
  EXPECT_EQ(student_t_cdf(-test::infinity, 3), 0);
  EXPECT_NEAR(student_t_two_sided(1.959963984540054, test::infinity), 0.05, 1e-15);
  EXPECT_GT(student_t_two_sided(1e308, 0.01), 0);
  for (const double value :
       {student_t_cdf(missing, 3), student_t_cdf(1, 0), student_t_cdf(1, -2), student_t_cdf(1, missing),
        student_t_quantile(0, 3), student_t_quantile(1, 3), student_t_quantile(missing, 3), student_t_quantile(0.4, 0)})
    EXPECT_TRUE(std::isnan(value));
}

// A sentence that calls p < 0.05 significant must not print 0.05.
TEST(PText, DoesNotRoundUpToTheLevel) {
  EXPECT_EQ(p_text(0.0498), "p = 0.0498");
  EXPECT_EQ(p_text(0.04999), "p = 0.04999");
  EXPECT_EQ(p_text(0.0494), "p = 0.049");
  EXPECT_EQ(p_text(0.0504), "p = 0.05");
  EXPECT_EQ(p_text(0.424), "p = 0.42");
  EXPECT_EQ(p_text(0.0009), "p < 0.001");
  EXPECT_EQ(p_text(NAN), "p unknown");
}

}  // namespace
}  // namespace headscope
