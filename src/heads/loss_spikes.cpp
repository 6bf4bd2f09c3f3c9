#include "heads/loss_spikes.h"

#include <algorithm>
#include <cmath>

namespace headscope {
namespace {

constexpr double normal_deviation_of_mad = 1.4826;  // 1 / Φ⁻¹(3/4)
constexpr double most_deviations = 6;
constexpr double least_share = 0.01;

// Of an even number: the mean of the two in the middle. Reorders the values.
double middle_of(std::vector<double>& values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, half);
  return values.size() % 2 == 1 ? *half : (*half + *std::max_element(values.begin(), half)) / 2;
}

}  // namespace

LossSpikes::LossSpikes(std::span<const double> before, std::optional<std::int64_t> last)
    : losses_(before.last(std::min(before.size(), window)).begin(), before.end()), last_(last) {}

std::optional<LossSpike> LossSpikes::add(std::int64_t step, double loss) {
  if (losses_.size() < window) {
    losses_.push_back(loss);
    return std::nullopt;
  }
  std::vector<double> values = losses_;
  losses_[next_] = loss;
  next_ = (next_ + 1) % window;
  if (last_ && step - *last_ < static_cast<std::int64_t>(window)) return std::nullopt;
  const double median = middle_of(values);
  const double above = loss - median;
  if (!(above > least_share * std::abs(median))) return std::nullopt;
  for (double& value : values) value = std::abs(value - median);
  const double deviation = normal_deviation_of_mad * middle_of(values);
  if (!(above > most_deviations * deviation)) return std::nullopt;
  last_ = step;
  return LossSpike{median, above / deviation};
}

}  // namespace headscope
