// What the figures of a tracked run show of it: moments, means over heads, groups of layers. No drawing.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/table.h"
#include "heads/tracks.h"
#include "stats/sample_moments.h"

namespace headscope {

// More moments than this cannot be told apart in a figure, but fill its data files.
constexpr std::size_t most_moments = 300;

// Some metrics and the moments at which all of them were measured.
struct TrackedMetrics {
  const Tracks* source = nullptr;
  std::vector<std::size_t> moments;  // places in source->moments

  [[nodiscard]] Integers tokens() const;
  [[nodiscard]] Integers steps() const;
};

// Of the source with more moments, or of the other when that one alone has them; nothing when none has, or when no head
// has a value.
std::optional<TrackedMetrics> tracked(const RunTracks& tracks, const std::vector<std::string_view>& metrics,
                                      std::size_t most = most_moments);

// The mean over the heads of a layer at each moment.
Numbers layer_means(const TrackedMetrics& shown, std::string_view metric, std::int64_t layer);

// All heads of a group's layers: their mean and their quartiles at each moment.
struct GroupSpread {
  Numbers mean, low, high;
};
GroupSpread group_spread(const TrackedMetrics& shown, std::string_view metric, LayerGroup group);

// Each value over the first finite one; all NaN when that is 0.
Numbers relative_to_start(Numbers values);

// "early L0–7"
std::string legend_of(const GroupLayers& group);

}  // namespace headscope
