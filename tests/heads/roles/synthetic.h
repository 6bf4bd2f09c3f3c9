// Hand-made measurements of heads.
#pragma once

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "heads/roles/definition.h"

namespace headscope::made_heads {

inline constexpr std::int64_t d_k = 64;

using MetricValues = std::vector<std::pair<std::string, double>>;  // metric, value

inline Tracks made_tracks(HeadCounts counts, std::int64_t moments = 1) {
  Tracks tracks("probe");
  tracks.counts = counts;
  for (std::int64_t i = 0; i < moments; ++i) tracks.moments.push_back({10 * i, 1000 * i});
  return tracks;
}

// A query head, and the key head that it reads.
inline void set_head(Tracks& tracks, std::size_t moment, std::int64_t layer, std::int64_t head,
                     const MetricValues& values) {
  for (const auto& [metric, value] : values) {
    const bool of_keys = metric.starts_with("k_");
    tracks.set(metric, moment, layer, of_keys ? tracks.key_head_of(head) : head, value);
  }
}

// An untrained model: nearly uniform attention over T = 256 tokens, keys of nearly one norm. `spread` in [-1, 1] moves
// the head within what random weights give.
inline MetricValues untrained(double spread = 0) {
  const double one_key = std::log(256.0) / 256;  // mean over rows of 1 / (i + 1)
  return {{"entropy_norm", 0.99 + 0.005 * spread},
          {"constancy", 0.93 + 0.02 * spread},
          {"consistency", 0.99 + 0.005 * spread},
          {"k_norm", 8 * (1 + 0.03 * spread)},
          {"k_axis", 0.33 + 0.02 * spread},
          {"sink", one_key * (1 + 0.5 * spread)},
          {"previous", one_key * (1 + 0.5 * spread)},
          {"self", one_key * (1 + 0.5 * spread)},
          {"induction", 1.0 / 256}};
}

inline MetricValues but(MetricValues values, const MetricValues& changes) {
  for (const auto& change : changes)
    for (auto& value : values)
      if (value.first == change.first) value = change;
  return values;
}

// One head of every role of the built-in definition, among untrained ones with norm 8.
inline MetricValues static_sink() {
  return but(untrained(), {{"entropy_norm", 0.2}, {"constancy", 0.8}, {"sink", 0.9}, {"k_axis", 0.6}, {"k_norm", 12}});
}
inline MetricValues retrieval() {
  return but(untrained(), {{"entropy_norm", 0.2}, {"constancy", 0.1}, {"k_norm", 12}});
}
inline MetricValues gatherer() {
  return but(untrained(), {{"k_norm", 4}});
}
inline MetricValues previous_token() {
  return but(untrained(), {{"entropy_norm", 0.2}, {"constancy", 0.1}, {"previous", 0.8}, {"k_norm", 12}});
}
inline MetricValues current_token() {
  return but(untrained(), {{"entropy_norm", 0.2}, {"constancy", 0.1}, {"self", 0.8}, {"k_norm", 12}});
}
inline MetricValues induction() {
  return but(static_sink(), {{"induction", 0.7}});
}

}  // namespace headscope::made_heads
