#include "stats/gaussian_draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headscope {
namespace {

// The sum of `degrees` squared normal values.
double draw_chi_squared(std::int64_t degrees, NumpyGenerator& generator) {
  constexpr std::int64_t many = 256;  // its cube root is normal to 1e-4 from here on: Wilson and Hilferty 1931
  if (degrees >= many) {
    const double share = 2 / (9 * static_cast<double>(degrees));
    return static_cast<double>(degrees) * std::pow(1 - share + std::sqrt(share) * draw_normal(generator), 3);
  }
  double sum = 0;
  for (std::int64_t i = 0; i < degrees; ++i) sum += std::pow(draw_normal(generator), 2);
  return sum;
}

}  // namespace

double draw_normal(NumpyGenerator& generator) {
  const double size = std::sqrt(-2 * std::log1p(-generator.uniform()));
  return size * std::cos(2 * std::numbers::pi * generator.uniform());
}

// RᵀR with a triangle R whose diagonal has the roots of χ² of n, n - 1, … degrees, and normal values right of it.
std::vector<double> draw_gaussian_gram(std::int64_t n, std::int64_t d, NumpyGenerator& generator) {
  const std::int64_t rows = std::min(n, d);
  std::vector<double> gram(static_cast<std::size_t>(d * d)), row(static_cast<std::size_t>(d));
  for (std::int64_t i = 0; i < rows; ++i) {
    row[static_cast<std::size_t>(i)] = std::sqrt(draw_chi_squared(n - i, generator));
    for (std::int64_t j = i + 1; j < d; ++j) row[static_cast<std::size_t>(j)] = draw_normal(generator);
    for (std::int64_t a = i; a < d; ++a)
      for (std::int64_t b = i; b < d; ++b)
        gram[static_cast<std::size_t>(a * d + b)] +=
            row[static_cast<std::size_t>(a)] * row[static_cast<std::size_t>(b)];
  }
  return gram;
}

}  // namespace headscope
