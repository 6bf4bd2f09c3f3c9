// Tracked runs with the course of seeds 000 to 002: heads that part, layers that differ by depth.
#pragma once

#include <cmath>
#include <cstdint>

#include "heads/tracks.h"

namespace headscope {

struct TrackShape {
  std::int64_t layers = 4, key_heads = 2, query_heads = 4, dimensions = 64;
  std::size_t moments = 10;
  std::int64_t tokens_per_moment = 4096;
  bool gains = true;
  bool constant = false;  // nothing ever changes
  double scale = 1;       // of every value
};

// A smooth number of -1 to 1 for a head: the same in every run.
inline double head_bias(std::int64_t layer, std::int64_t head) {
  return std::sin(2.7 * static_cast<double>(layer) + 1.9 * static_cast<double>(head) + 0.4);
}

inline void set_head_values(Tracks& tracks, const TrackShape& shape, std::size_t moment, double progress) {
  for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
    const double depth = static_cast<double>(layer) / static_cast<double>(std::max<std::int64_t>(shape.layers - 1, 1));
    const auto norm_of = [&](std::int64_t head) {
      const double split = 2.5 * progress * head_bias(layer, head);
      return 8 - 3 * progress * (1 - progress) + progress * (4 * depth - 2) + split;
    };
    const auto set = [&](std::string_view metric, std::int64_t head, double value) {
      tracks.set(metric, moment, layer, head, shape.scale * value);
    };
    for (std::int64_t head = 0; head < shape.key_heads; ++head) {
      const double norm = norm_of(head);
      set("k_norm", head, norm);
      set("k_max_abs", head, norm * (0.4 + 0.5 * progress * depth));
      set("k_max_abs_mean", head, norm * (0.3 + 0.3 * progress * depth));
      set("k_pr_vector", head, 24 - progress * (10 * depth + 2) + head_bias(layer, head));
      set("k_pr", head, 50 - progress * (25 * depth + 5) + 4 * head_bias(layer, head));
      set("k_cosine", head, 0.05 + 0.5 * progress * depth);
    }
    for (std::int64_t head = 0; head < shape.query_heads; ++head) {
      const double key_norm = norm_of(tracks.key_head_of(head));
      set("q_norm", head, 8 + progress + 0.3 * head_bias(layer, head));
      set("qk_ratio", head, (8 + progress) / key_norm);
      set("entropy", head, 4.5 - progress * (0.35 * (key_norm - 4) + 0.4 * head_bias(head, layer)));
    }
  }
}

// Measured on training batches; the probes have none.
inline RunTracks synthetic_tracks(const TrackShape& shape) {
  RunTracks run;
  run.train.counts = {shape.layers, shape.key_heads, shape.query_heads};
  for (std::size_t moment = 0; moment < shape.moments; ++moment) {
    const auto at = static_cast<std::int64_t>(moment);
    run.train.moments.push_back({at * 10, at * shape.tokens_per_moment});
  }
  for (std::size_t moment = 0; moment < shape.moments; ++moment) {
    const double share = shape.moments == 1 ? 1
                                            : static_cast<double>(moment) /
                                                  static_cast<double>(std::max<std::size_t>(shape.moments - 1, 1));
    const double progress = shape.constant ? 0 : 1 - std::exp(-4 * share) * std::cos(6 * share);
    set_head_values(run.train, shape, moment, progress);
    for (std::int64_t layer = 0; shape.gains && layer < shape.layers; ++layer) {
      LayerGains gains{run.train.moments[moment], layer, {}, {}};
      for (std::int64_t i = 0; i < shape.dimensions; ++i)
        gains.k.push_back(1 + 0.4 * progress * std::pow(head_bias(layer, i), 3));
      gains.q = gains.k;
      run.gains.push_back(std::move(gains));
    }
  }
  return run;
}

}  // namespace headscope
