#include "stats/rank_correlation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "stats/distributions.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

void set_interval(RankCorrelation& result) {
  const double infinite_df = std::numeric_limits<double>::infinity();
  const double error = std::sqrt((1 + result.rho * result.rho / 2) / static_cast<double>(result.n - 3));
  const double half = student_t_quantile(0.975, infinite_df) * error;
  const double centre = std::atanh(result.rho);  // infinite for 1 and -1: the interval is that point
  result.low = std::tanh(centre - half);
  result.high = std::tanh(centre + half);
}

}  // namespace

std::vector<double> average_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    const double shared = static_cast<double>(first + 1 + end) / 2;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = shared;
    first = end;
  }
  return ranks;
}

RankCorrelation rank_correlation(std::span<const double> x, std::span<const double> y) {
  HEADSCOPE_CHECK(x.size() == y.size(), "{} and {} values", x.size(), y.size());
  std::vector<double> a, b;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) || std::isnan(y[i])) continue;
    a.push_back(x[i]);
    b.push_back(y[i]);
  }
  RankCorrelation result{.n = a.size()};
  if (a.size() < 3) return result;
  const std::vector<double> rank_a = average_ranks(a), rank_b = average_ranks(b);
  // Twice the distance from the mean rank is a whole number: these sums are exact.
  const double mean = static_cast<double>(a.size()) + 1;
  const auto [aa, bb, ab] = sums<3>(a.size(), [&](std::size_t i) {
    const double u = 2 * rank_a[i] - mean, v = 2 * rank_b[i] - mean;
    return std::array{u * u, v * v, u * v};
  });
  if (aa == 0 || bb == 0) return result;
  result.rho = std::clamp(ab / std::sqrt(aa * bb), -1.0, 1.0);
  const auto df = static_cast<double>(a.size() - 2);
  result.p_value = student_t_two_sided(result.rho * std::sqrt(df / ((1 + result.rho) * (1 - result.rho))), df);
  if (a.size() >= 4) set_interval(result);
  return result;
}

}  // namespace headscope
