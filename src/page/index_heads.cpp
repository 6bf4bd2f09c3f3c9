// The metrics of heads over time, and the gains of QK-Norm.
#include <algorithm>
#include <cmath>

#include "page/index_parts.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_gain_moments = 50;

// A head of a series is in the page: all are, or it was chosen, or a chosen query head reads it.
bool is_chosen(const Tracks& tracks, HeadKind kind, std::int64_t layer, std::int64_t head, const Choice& choice) {
  if (choice.heads.empty()) return true;
  return std::ranges::any_of(choice.heads, [&](const auto& chosen) {
    return chosen.first == layer && head == (kind == HeadKind::key ? tracks.key_head_of(chosen.second) : chosen.second);
  });
}

ordered_json levels_json(const MetricLevels& levels, std::string_view metric) {
  ordered_json list = ordered_json::array();
  if (const auto found = levels.find(metric); found != levels.end())
    for (const MetricLevel& level : found->second) {
      list.push_back({{"value", rounded_to_float(level.value)}, {"text", level.text}});
      if (level.role) list.back()["role"] = true;
    }
  return list;
}

ordered_json series_json(const ReportRun& run, const Tracks& tracks, const Metric& metric, const Places& places,
                         IndexParts& parts) {
  const std::int64_t heads = tracks.heads_of(metric.name);
  const auto all = static_cast<std::size_t>(tracks.counts.layers * heads);
  std::vector<double> values(all * places.size(), missing);
  std::vector<bool> chosen(all);
  for (std::size_t head = 0; head < all; ++head)
    chosen[head] = is_chosen(tracks, metric.kind, static_cast<std::int64_t>(head) / heads,
                             static_cast<std::int64_t>(head) % heads, parts.choice);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::span<const double> at = tracks.at(metric.name, places[i]);
    for (std::size_t head = 0; head < all; ++head)
      if (chosen[head]) values[head * places.size() + i] = at[head];
  }
  SeriesBlock coded = series_block(values, places.size(), parts.detail.precision, metric.unit == index_unit);
  MetricError& error = parts.content.errors[std::string(metric.name)];
  if (coded.log)
    error.relative = std::max(error.relative, std::expm1(coded.error));
  else
    error.absolute = std::max(error.absolute, coded.error);
  ordered_json last = ordered_json::array();
  for (std::size_t head = 0; head < all; ++head) {
    const double value = values[(head + 1) * places.size() - 1];
    last.push_back(parts.exact_last || !std::isfinite(value) ? value : rounded_to_float(value));
  }
  parts.measured.insert(metric.name);
  ordered_json series = {{"metric", metric.name}, {"heads", heads}};
  series.update(parts.series(std::move(coded)));
  series["last"] = std::move(last);
  if (ordered_json levels = levels_json(run.metric_levels, metric.name); !levels.empty())
    series["levels"] = std::move(levels);
  return series;
}

Places places_of_source(const ReportRun& run, const Tracks& tracks, IndexParts& parts) {
  std::set<std::int64_t> changes;
  if (run.roles && run.roles->roles.source == tracks.source)
    for (const RoleTransition& transition : run.roles->roles.timeline.transitions)
      changes.insert(transition.moment.step);
  Places places = kept_moments(tracks.moments, changes, parts.detail.moments);
  parts.most_kept = std::max(parts.most_kept, places.size());
  const std::size_t of = std::max(tracks.measured, tracks.moments.size());
  if (places.size() < of) parts.thinned = std::max(parts.thinned, of);
  return places;
}

}  // namespace

ordered_json sources_json(const ReportRun& run, IndexParts& parts) {
  ordered_json list = ordered_json::array();
  for (const Tracks* tracks : {&run.tracks.probe, &run.tracks.train}) {
    if (tracks->moments.empty()) continue;
    if (tracks == &run.tracks.train && !parts.detail.training_batches && !run.tracks.probe.moments.empty()) {
      parts.without_training = true;
      continue;
    }
    const Places places = places_of_source(run, *tracks, parts);
    ordered_json series = ordered_json::array();
    for (const Metric& metric : head_metrics())
      if (tracks->has(metric.name) && parts.choice.has_metric(metric.name))
        series.push_back(series_json(run, *tracks, metric, places, parts));
    list.push_back({{"name", tracks->source},
                    {"step", places_json(tracks->moments, places, &Moment::step)},
                    {"tokens", places_json(tracks->moments, places, &Moment::tokens)},
                    {"of", std::max(tracks->measured, tracks->moments.size())},
                    {"series", std::move(series)}});
  }
  return list;
}

// [kind q, k][layer][dimension][moment]
ordered_json gains_json(const ReportRun& run, IndexParts& parts) {
  const std::vector<LayerGains>& gains = run.tracks.gains;
  if (gains.empty()) return nullptr;
  std::vector<Moment> moments;
  for (const LayerGains& one : gains)
    if (moments.empty() || moments.back() != one.moment) moments.push_back(one.moment);
  const Places places = kept_moments(
      moments, {},
      parts.detail.precision.exact ? moments.size() : std::min(parts.detail.moments / 6 + 2, most_gain_moments));
  std::map<std::int64_t, std::size_t> place_of_step;
  for (std::size_t i = 0; i < places.size(); ++i) place_of_step[moments[places[i]].step] = i;
  const auto layers = static_cast<std::size_t>(run.counts().layers);
  const std::size_t d_k = std::max(gains.front().q.size(), gains.front().k.size());
  std::vector<double> values(2 * layers * d_k * places.size(), missing);
  for (const LayerGains& one : gains) {
    const auto place = place_of_step.find(one.moment.step);
    if (place == place_of_step.end()) continue;
    for (std::size_t kind = 0; kind < 2; ++kind) {
      const std::vector<double>& vector = kind == 0 ? one.q : one.k;
      for (std::size_t i = 0; i < std::min(d_k, vector.size()); ++i)
        values[((kind * layers + static_cast<std::size_t>(one.layer)) * d_k + i) * places.size() + place->second] =
            vector[i];
    }
  }
  ordered_json coded = parts.series(series_block(values, places.size(), parts.detail.precision));
  coded["step"] = places_json(moments, places, &Moment::step);
  coded["tokens"] = places_json(moments, places, &Moment::tokens);
  coded["layers"] = layers;
  coded["d_k"] = d_k;
  return coded;
}

}  // namespace headscope
