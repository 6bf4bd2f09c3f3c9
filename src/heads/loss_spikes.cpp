#include "heads/loss_spikes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stats/sample_moments.h"

namespace headscope {
namespace {

constexpr double normal_deviation_of_mad = 1.4826;  // 1 / Φ⁻¹(3/4)
constexpr double most_deviations = 6;
constexpr double least_share = 0.01;

}  // namespace

LossSpikes::LossSpikes(std::span<const double> before, std::optional<std::int64_t> last)
    : losses_(before.last(std::min(before.size(), window)).begin(), before.end()), last_(last) {}

std::optional<LossSpike> LossSpikes::add(std::int64_t step, double loss) {
  if (losses_.size() < window) {
    losses_.push_back(loss);
    return std::nullopt;
  }
  const bool follows_one = last_ && step - *last_ < static_cast<std::int64_t>(window);
  std::vector<double> values = follows_one ? std::vector<double>() : losses_;
  losses_[next_] = loss;
  next_ = (next_ + 1) % window;
  if (follows_one) return std::nullopt;
  const double middle = median(values);
  const double above = loss - middle;
  if (!(above > least_share * std::abs(middle))) return std::nullopt;
  for (double& value : values) value = std::abs(value - middle);
  const double deviation = normal_deviation_of_mad * median(std::move(values));
  if (!(above > most_deviations * deviation)) return std::nullopt;
  last_ = step;
  return LossSpike{middle, above / deviation};
}

}  // namespace headscope
