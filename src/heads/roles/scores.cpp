#include "heads/roles/scores.h"

#include <algorithm>
#include <cmath>

#include "core/missing.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

// Over the key heads that were measured; NaN when none was.
double median_key_norm(std::span<const double> k_norm) {
  std::vector<double> finite;
  std::ranges::copy_if(k_norm, std::back_inserter(finite), [](double value) { return std::isfinite(value); });
  return median(std::move(finite));
}

// How far the largest component reaches from that of a flat key, 1/sqrt(d), to that of a one-hot one, 1.
double axis_alignment(double k_axis, std::int64_t d) {
  const double flat = d > 1 ? 1 / std::sqrt(static_cast<double>(d)) : 0;
  return (k_axis - flat) / (1 - flat);
}

}  // namespace

std::vector<HeadScores> scores_at(const Tracks& tracks, std::size_t moment, std::int64_t head_dimension) {
  const double typical_norm = median_key_norm(tracks.at("k_norm", moment));
  const auto formula = [&](Score score, double value) {
    switch (score) {
      case Score::focused:
      case Score::query_dependent:
        return 1 - value;
      case Score::axis_aligned:
        return axis_alignment(value, head_dimension);
      case Score::high_norm:  // r / (1 + r) with r = value / typical_norm, also where the median is 0
        return value / (typical_norm + value);
      case Score::low_norm:
        return typical_norm / (typical_norm + value);
      default:
        return value;
    }
  };
  const auto [layers, key_heads, query_heads] = tracks.counts;
  std::vector<HeadScores> scores(static_cast<std::size_t>(layers * query_heads));
  for (std::size_t i = 0; i < n_scores; ++i) {
    const auto score = static_cast<Score>(i);
    const std::string_view metric = metric_of(score);
    const auto values = tracks.at(metric, moment);
    const bool of_keys = metric_named(metric, "roles").kind == HeadKind::key;
    for (std::int64_t place = 0; place < layers * query_heads; ++place) {
      const std::int64_t layer = place / query_heads, head = place % query_heads;
      const std::int64_t measured = of_keys ? layer * key_heads + tracks.key_head_of(head) : place;
      const double value = values.empty() ? missing : values[static_cast<std::size_t>(measured)];
      scores[static_cast<std::size_t>(place)][score] =
          std::isfinite(value) ? std::clamp(formula(score, value), 0.0, 1.0) : missing;
    }
  }
  return scores;
}

}  // namespace headscope
