#include "data/choices.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.h"

namespace headscope {

std::size_t Choices::pick(std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  HEADSCOPE_CHECK(total > 0, "{} weights that sum to {}", weights.size(), total);
  const std::size_t chosen = choose(weights, total);
  HEADSCOPE_CHECK(weights[chosen] > 0, "choice {} of {} has no weight", chosen, weights.size());
  nats_ -= std::log(weights[chosen] / total);
  return chosen;
}

std::size_t Choices::pick_uniform(std::size_t count) {
  return pick(std::vector<double>(count, 1.0));
}

std::size_t RandomChoices::choose(std::span<const double> weights, double total) {
  double left = generator_.uniform() * total;
  std::size_t last = 0;  // taken when rounding leaves a little more than the sum of all weights
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    if (left < weights[i]) return i;
    left -= weights[i];
    last = i;
  }
  return last;
}

}  // namespace headscope
