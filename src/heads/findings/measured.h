// What the questions share in reading a run: the source, means over what was measured, curves of layer groups.
#pragma once

#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/missing.h"
#include "heads/tracks.h"

namespace headscope {

// How an answer is reached, in a sentence for the reader of the answer.
struct Rule {
  std::string_view name, sentence;
};

// What an answer rests on.
struct Basis {
  std::string source;
  std::vector<Moment> moments;
  std::vector<std::string> not_tracked;  // metrics that the question asks for and the source does not have

  // False: the question needs a course over time and there is none.
  [[nodiscard]] bool has_course() const { return moments.size() > 1; }
};

// The finest source; the other one where only that has all these metrics.
const Tracks& source_for(const RunTracks& run, std::initializer_list<std::string_view> metrics);

Basis basis_of(const Tracks& tracks, std::initializer_list<std::string_view> metrics);

// All heads at the last moment; empty when the metric was not tracked.
std::span<const double> heads_at_end(const Tracks& tracks, std::string_view metric);

// The mean over the heads of a group of layers: at the first moment, where it is lowest, at the last moment.
struct GroupCurve {
  double start = missing, lowest = missing, end = missing;
  std::optional<Moment> lowest_at;  // the first such moment
};
GroupCurve group_curve(const Tracks& tracks, std::string_view metric, const GroupLayers& group);

// The mean over the heads of a group at one moment.
double group_mean(const Tracks& tracks, std::string_view metric, std::size_t moment, const GroupLayers& group);

}  // namespace headscope
