// Continuous scores of every query head: the one place where their formulas are defined.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "heads/tracks.h"

namespace headscope {

// Names this set of formulas in every output; another formula is another id.
constexpr std::string_view scores_id = "scores-1";

// All are clamped to [0, 1]. Key metrics are those of the key head that the query head reads.
enum class Score {
  focused,          // 1 - entropy_norm
  broad,            // entropy_norm
  constant,         // constancy
  query_dependent,  // 1 - constancy
  axis_aligned,  // (k_axis - 1/sqrt(d)) / (1 - 1/sqrt(d)), d the head dimension: 0 for a flat key, 1 for a one-hot one
  high_norm,     // r / (1 + r), r = k_norm / median of k_norm over all key heads of the model: 1/2 is typical
  low_norm,      // 1 / (1 + r)
  consistent,    // consistency
  sink,          // as measured, like the rest
  previous,
  self,
  induction,
};

template <>
struct EnumNames<Score> {
  static constexpr std::array<std::string_view, 12> names = {"focused",      "broad",     "constant", "query_dependent",
                                                             "axis_aligned", "high_norm", "low_norm", "consistent",
                                                             "sink",         "previous",  "self",     "induction"};
};
constexpr std::size_t n_scores = EnumNames<Score>::names.size();
constexpr std::string_view score_name(Score score) {
  return EnumNames<Score>::names[static_cast<std::size_t>(score)];
}

// The metric that a score is made of.
constexpr std::string_view metric_of(Score score) {
  constexpr std::array<std::string_view, n_scores> metrics = {
      "entropy_norm", "entropy_norm", "constancy", "constancy", "k_axis", "k_norm",
      "k_norm",       "consistency",  "sink",      "previous",  "self",   "induction"};
  return metrics[static_cast<std::size_t>(score)];
}

// The scores of one head; NaN where the metric was not measured.
struct HeadScores {
  std::array<double, n_scores> values{};
  [[nodiscard]] double operator[](Score score) const { return values[static_cast<std::size_t>(score)]; }
  [[nodiscard]] double& operator[](Score score) { return values[static_cast<std::size_t>(score)]; }
};

// All query heads at one moment: [layer][head]. Without the head dimension (0), axis_aligned is k_axis itself.
std::vector<HeadScores> scores_at(const Tracks& tracks, std::size_t moment, std::int64_t head_dimension = 0);

}  // namespace headscope
