// What the figures of a tracked run show of it: moments, means over heads, groups of layers; and the figures that are
// more than their marks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "figures/figure.h"
#include "heads/tracks.h"
#include "stats/sample_moments.h"

namespace headscope {

// More moments than this cannot be told apart in a figure, but fill its data files.
constexpr std::size_t most_moments = 300;
constexpr std::size_t most_panels = 8;

// What a course is drawn against: the column of the moments, and the axis.
struct CourseColumn {
  const char* name;
  Axis axis;
};
// Logarithmic where moments lie ever farther apart, as the published revisions of a model do: 1, 2, 4, …, 1000, 10000.
CourseColumn course_column(std::span<const Moment> moments);

// Some metrics and the moments at which all of them were measured.
struct TrackedMetrics {
  const Tracks* source = nullptr;
  std::vector<std::size_t> moments;  // places in source->moments

  // Columns step and tokens, a row for each moment.
  [[nodiscard]] Table table() const;
  // Against tokens, or against updates where tokens are not known.
  [[nodiscard]] CourseColumn course() const { return course_column(source->moments); }
};

// Of the source with more moments, or of the other when that one alone has them; nothing when none has, or when no head
// has a value.
std::optional<TrackedMetrics> tracked(const RunTracks& tracks, const std::vector<std::string_view>& metrics);

// Columns layer and `head`, a row for each head of the model, as Tracks::at has them.
Table head_table(std::int64_t layers, std::int64_t heads, const char* head);

// The values of a head at each moment, and the mean over the heads of a layer.
Numbers head_values(const TrackedMetrics& shown, std::string_view metric, std::int64_t layer, std::int64_t head);
Numbers layer_means(const TrackedMetrics& shown, std::string_view metric, std::int64_t layer);

// A mark in the colour of a group of layers, which it has in every figure, and with its name: "early L0–7". In a table
// in order of layers, it has the rows of that group.
Mark of_group(Mark mark, const GroupLayers& group, std::int64_t rows_of_a_layer = 0);

struct GroupPanel {
  std::string_view metric;
  std::string label;      // of the y axis when the panel is alone, else above it
  bool growth = false;    // relative to the start; such panels share an axis
  bool of_heads = false;  // instead of a curve for each layer: quartiles of heads, or a curve for each of a few heads
  std::vector<Reference> references = {};
};

// A panel for each metric that was tracked, one below the other. `figure` has its names. Over the course: the groups'
// means, with their layers or heads. Of one moment: every head and the mean of its layer.
Figure group_figure(Figure figure, const RunTracks& tracks, const std::vector<GroupPanel>& panels);

// The learned gain of the keys, dimension by dimension.
Figure gamma_figure(Figure figure, const std::vector<LayerGains>& gains);

}  // namespace headscope
