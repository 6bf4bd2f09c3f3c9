#include "heads/figures/tracking_series.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/lists.h"

namespace headscope {

CourseColumn course_column(std::span<const Moment> moments) {
  const Course course = course_of(moments);
  CourseColumn column{course.in_tokens ? "tokens" : "step", {.kind = course.in_tokens ? Axis::tokens : Axis::updates}};
  constexpr double decades = 100, uneven = 50;
  double first = 0, before = 0, least = 0, most = 0;  // the first that is not 0; gaps between the ones behind it
  for (const Moment& moment : moments) {
    const auto now = static_cast<double>(course.at(moment));
    if (first > 0 && now > before) {
      least = least > 0 ? std::min(least, now - before) : now - before;
      most = std::max(most, now - before);
    }
    if (first == 0) first = now;
    before = now;
  }
  if (first > 0 && before >= decades * first && most >= uneven * least) column.axis.decades_from = first;
  return column;
}

Table TrackedMetrics::table() const {
  Integers steps, tokens;
  for (const std::size_t moment : moments) {
    steps.push_back(source->moments[moment].step);
    tokens.push_back(source->moments[moment].tokens);
  }
  Table table("moments");
  return table.add("step", steps).add("tokens", tokens);
}

std::optional<TrackedMetrics> tracked(const RunTracks& tracks, const std::vector<std::string_view>& metrics) {
  for (const Tracks* source : {&tracks.finest(), &tracks.other()}) {
    if (!source->has_all(metrics)) continue;
    const HeadCounts& counts = source->counts;
    if (counts.layers > most_layers || counts.key_heads > most_heads || counts.query_heads > most_heads)
      fail_input("{} layers of {} key heads and {} query heads; figures show {} layers of {} heads", counts.layers,
                 counts.key_heads, counts.query_heads, most_layers, most_heads);
    std::vector<std::size_t> measured;
    for (std::size_t moment = 0; moment < source->moments.size(); ++moment)
      if (std::ranges::all_of(metrics, [&](std::string_view metric) {
            return std::ranges::any_of(source->at(metric, moment), [](double value) { return std::isfinite(value); });
          }))
        measured.push_back(moment);
    if (measured.empty()) continue;
    TrackedMetrics shown{source, {}};
    for (const std::size_t place : evenly_spaced(measured.size(), most_moments))
      shown.moments.push_back(measured[place]);
    return shown;
  }
  return std::nullopt;
}

Table head_table(std::int64_t layers, std::int64_t heads, const char* head) {
  Integers layer_of, head_of;
  for (std::int64_t i = 0; i < layers * heads; ++i) {
    layer_of.push_back(i / heads);
    head_of.push_back(i % heads);
  }
  Table table("heads");
  return table.add("layer", layer_of).add(head, head_of);
}

Numbers head_values(const TrackedMetrics& shown, std::string_view metric, std::int64_t layer, std::int64_t head) {
  const auto curve = shown.source->of_head(metric, layer, head);
  Numbers values;
  for (const std::size_t moment : shown.moments) values.push_back(curve[moment]);
  return values;
}

Numbers layer_means(const TrackedMetrics& shown, std::string_view metric, std::int64_t layer) {
  Numbers means;
  for (const std::size_t moment : shown.moments)
    means.push_back(finite_mean(shown.source->at(metric, moment, layer, layer)));
  return means;
}

Mark of_group(Mark mark, const GroupLayers& group, std::int64_t rows_of_a_layer) {
  const std::int64_t last = (group.last + 1) * rows_of_a_layer - 1;
  if (last >= 0) mark.rows = {static_cast<std::size_t>(group.first * rows_of_a_layer), static_cast<std::size_t>(last)};
  const std::string layers =
      group.first == group.last ? fmt::format("L{}", group.first) : fmt::format("L{}–{}", group.first, group.last);
  return mark.coloured({.role = Colour::depth, .index = static_cast<std::size_t>(group.group)})
      .named(fmt::format("{} {}", name_of(group.group), layers));
}

}  // namespace headscope
