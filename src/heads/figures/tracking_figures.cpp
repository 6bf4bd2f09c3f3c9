#include "heads/figures/tracking_figures.h"

#include <algorithm>
#include <cmath>

#include "core/lists.h"
#include "figures/columns.h"
#include "heads/figures/group_figure.h"

namespace headscope {
namespace {

constexpr std::size_t most_panels = 8;
constexpr std::int64_t most_named_heads = 6;  // as many categories stand out from the paper in both themes

// The norm that RMS normalisation alone gives a vector of this many components:
// the root of d_k.
double normalised_norm(const RunTracks& tracks) {
  for (const LayerGains& gains : tracks.gains)
    if (!gains.k.empty()) return std::sqrt(static_cast<double>(gains.k.size()));
  return missing;
}

// A line for each head that has a value; up to six have a colour and a name
// each, more a place in a colour bar.
Panel layer_panel(const TrackedMetrics& shown, std::int64_t layer, Figure& figure, std::vector<double>& values) {
  Panel panel{.title = fmt::format("layer {}", layer)};
  const std::string data = fmt::format("layer{}", layer);
  const std::int64_t heads = shown.source->counts.key_heads;
  Table table("heads");
  table.add("step", shown.steps()).add("tokens", shown.tokens());
  for (std::int64_t head = 0; head < heads; ++head) {
    const auto curve = shown.source->of_head("k_norm", layer, head);
    Numbers norms;
    for (const std::size_t moment : shown.moments) norms.push_back(curve[moment]);
    values.insert(values.end(), norms.begin(), norms.end());
    const Mark line = Mark::line(data, "tokens", fmt::format("H{}", head));
    if (finite_count(norms) > 0)
      panel.marks.push_back(heads <= most_named_heads
                                ? line.wide(1.3).named(line.y).coloured(category(static_cast<std::size_t>(head)))
                                : line.wide(0.9).coloured(by_value(head)));
    table.add(line.y, std::move(norms));
  }
  figure.data.push_back({data, std::move(table)});
  return panel;
}

Figure norm_divergence_figure(const TrackingFigureData& data) {
  Figure figure{"norm_divergence", "Key norm of every key head", data.title};
  const auto shown = tracked(*data.tracks, {"k_norm"});
  if (!shown || shown->moments.size() == 1)
    return group_figure(std::move(figure), *data.tracks, {{.metric = "k_norm", .label = "‖k‖"}});
  std::vector<std::int64_t> present;  // layers with a value, so that no panel is empty
  for (std::int64_t layer = 0; layer < shown->source->counts.layers; ++layer)
    if (finite_count(layer_means(*shown, "k_norm", layer)) > 0) present.push_back(layer);
  std::vector<double> values, moments;
  for (const std::int64_t tokens : shown->tokens()) moments.push_back(static_cast<double>(tokens));
  for (const std::size_t place : evenly_spaced(present.size(), most_panels))
    figure.panels.push_back(layer_panel(*shown, present[place], figure, values));
  const bool alone = figure.panels.size() == 1;
  for (Panel& panel : figure.panels) {
    panel.x = token_axis(moments, alone ? 6 : 4);
    panel.y = labelled(padded(round_axis(values, alone ? 6 : 5), 0.03), {"mean ‖k‖"});
  }
  const std::int64_t heads = shown->source->counts.key_heads;
  if (heads > most_named_heads) figure.colours = ordered_scale(0, heads - 1, "key head");
  figure.grid = grid_of(figure.panels.size());
  return figure;
}

struct ScatterPoint {
  std::int64_t layer, q_head;
  double k_norm, entropy;
};

// The heads of one moment that have both values, layer by layer.
std::vector<ScatterPoint> scatter_points(const Tracks& source, std::size_t moment) {
  const auto norm = source.at("k_norm", moment), entropy = source.at("entropy", moment);
  std::vector<ScatterPoint> points;
  for (std::int64_t i = 0; i < source.counts.layers * source.counts.query_heads; ++i) {
    const std::int64_t layer = i / source.counts.query_heads, head = i % source.counts.query_heads;
    const auto key_head = static_cast<std::size_t>(layer * source.counts.key_heads + source.key_head_of(head));
    points.push_back({layer, head, norm[key_head], entropy[static_cast<std::size_t>(i)]});
  }
  std::erase_if(points,
                [](const ScatterPoint& one) { return !std::isfinite(one.k_norm) || !std::isfinite(one.entropy); });
  return points;
}

// A group has a shape, too: colours are not all.
std::vector<Mark> scatter_marks(const std::string& data, const std::vector<ScatterPoint>& points,
                                const HeadCounts& counts) {
  const std::int64_t heads = counts.layers * counts.query_heads;
  const double size = heads <= 64 ? 0.6 : heads <= 400 ? 0.42 : heads <= 2000 ? 0.3 : 0.18;
  std::vector<Mark> marks;
  for (const GroupLayers& group : layer_groups(counts.layers)) {
    const auto first = std::ranges::lower_bound(points, group.first, {}, &ScatterPoint::layer) - points.begin();
    const auto last = std::ranges::upper_bound(points, group.last, {}, &ScatterPoint::layer) - points.begin();
    if (first == last) continue;
    marks.push_back(Mark::points(data, "k_norm", "entropy")
                        .coloured(depth_of(group))
                        .changed(&Mark::shape, static_cast<PointShape>(group.group))
                        .faded(0.62)
                        .sized(size)
                        .named(legend_of(group))
                        .of_rows(static_cast<std::size_t>(first), static_cast<std::size_t>(last - 1)));
  }
  return marks;
}

Figure entropy_norm_figure(const TrackingFigureData& data) {
  Figure figure{"entropy_norm_scatter", "Entropy and key norm", data.title};
  const auto shown = tracked(*data.tracks, {"k_norm", "entropy"});
  std::vector<double> norms, entropies;
  for (const std::size_t place : evenly_spaced(shown ? shown->moments.size() : 0, 4)) {
    const std::size_t moment = shown->moments[place];
    const auto points = scatter_points(*shown->source, moment);
    if (points.empty()) continue;
    const std::string name = fmt::format("m{}", figure.data.size());
    const TokenUnit unit = token_unit(static_cast<double>(shown->tokens().back()));
    figure.panels.push_back({.title = token_text(static_cast<double>(shown->source->moments[moment].tokens), unit),
                             .marks = scatter_marks(name, points, shown->source->counts)});
    for (const ScatterPoint& one : points) {
      norms.push_back(one.k_norm);
      entropies.push_back(one.entropy);
    }
    figure.data.push_back({name, table_of(points, "layer", &ScatterPoint::layer, "q_head", &ScatterPoint::q_head,
                                          "k_norm", &ScatterPoint::k_norm, "entropy", &ScatterPoint::entropy)});
  }
  if (figure.panels.empty()) return empty_figure(figure.name, figure.title, data.title, not_tracked);
  for (Panel& panel : figure.panels) {
    panel.x = labelled(padded(round_axis(norms, 4), 0.04), {"mean ‖k‖ of the key head"});
    panel.y = labelled(padded(round_axis(entropies, 5), 0.04), {"attention entropy (nats)"});
  }
  figure.grid = grid_of(figure.panels.size());
  return figure;
}

Figure key_profile_figure(const TrackingFigureData& data) {
  const auto shown = tracked(*data.tracks, {"k_norm"});
  const bool has_start = shown && shown->moments.size() > 1;
  Figure figure{"key_magnitude_profile", has_start ? "Final key norm by layer" : "Key norm by layer", data.title};
  if (!shown) return empty_figure(figure.name, figure.title, data.title, not_tracked);
  const std::int64_t layers = shown->source->counts.layers;
  Integers layer;
  Numbers final, start;
  for (std::int64_t i = 0; i < layers; ++i) {
    const Numbers curve = layer_means(*shown, "k_norm", i);
    layer.push_back(i);
    final.push_back(curve.back());
    start.push_back(curve.front());
  }
  std::vector<double> values = final;
  values.push_back(0);
  Table table("layers");
  table.add("layer", layer).add("final", final);
  Panel panel{.x = labelled(integer_axis(0, layers - 1, 16), {"layer"})};
  panel.x.grid = false;
  for (const GroupLayers& group : layer_groups(layers)) {
    const auto first = static_cast<std::size_t>(group.first), last = static_cast<std::size_t>(group.last);
    if (std::isfinite(finite_mean(std::span(final).subspan(first, last - first + 1))))
      panel.marks.push_back(Mark::box("layers", "layer", "", "final")
                                .coloured(depth_of(group))
                                .named(legend_of(group))
                                .of_rows(first, last));
  }
  if (has_start) {
    table.add("start", start);
    values.insert(values.end(), start.begin(), start.end());
    if (finite_count(start) > 0)
      panel.marks.push_back(
          Mark::segment("layers", "layer", "start", "start").wide(1.4).shifted(-0.4, 0.4).named("start"));
  }
  panel.y = labelled(round_axis(values), {"mean ‖k‖"});
  panel.y.high += 0.02 * (panel.y.high - panel.y.low);
  figure.data = {{"layers", std::move(table)}};
  figure.panels = {std::move(panel)};
  return figure;
}

}  // namespace

std::vector<Figure> tracking_figures(const TrackingFigureData& data) {
  const auto groups = [&](const char* name, const char* title, const std::vector<GroupPanel>& panels) {
    return group_figure({name, title, data.title}, *data.tracks, panels);
  };
  return {norm_divergence_figure(data),
          entropy_norm_figure(data),
          groups("effective_rank", "Effective rank of keys",
                 {{.metric = "k_pr_vector", .label = "PR of one key's components", .quartiles = true},
                  {.metric = "k_pr", .label = "PR of the keys' singular values", .quartiles = true}}),
          gamma_heatmap_figure(data),
          groups("key_norm_evolution", "Key norm",
                 {{.metric = "k_norm",
                   .label = "mean ‖k‖",
                   .reference = normalised_norm(*data.tracks),
                   .reference_name = "√dₖ"}}),
          groups("outlier_magnitude", "Largest key component",
                 {{.metric = "k_max_abs", .label = "largest of all tokens"},
                  {.metric = "k_max_abs_mean", .label = "largest of a token, mean over tokens"}}),
          groups("latent_redundancy", "Similarity of keys", {{.metric = "k_cosine", .label = "mean cosine of pairs"}}),
          key_profile_figure(data),
          groups("qk_ratio", "Query and key norms",
                 {{.metric = "qk_ratio", .label = "query norm / key norm"},
                  {.metric = "q_norm", .label = "query norm, relative to its start", .growth = true},
                  {.metric = "k_norm", .label = "key norm, relative to its start", .growth = true}})};
}

std::vector<std::filesystem::path> draw_tracking_figures(const TrackingFigureData& data,
                                                         const std::filesystem::path& folder, const Theme& theme) {
  return draw(tracking_figures(data), folder, theme).files;
}

}  // namespace headscope
