#include "heads/figures/tracking_figures.h"

#include <algorithm>
#include <cmath>

#include "core/lists.h"
#include "core/missing.h"
#include "heads/figures/tracking_series.h"

namespace headscope {
namespace {

constexpr std::int64_t most_named_heads = 6;  // as many categories stand out from the paper in both themes

// The norm that RMS normalisation alone gives a vector of this many components: the root of d_k.
double normalised_norm(const RunTracks& tracks) {
  for (const LayerGains& gains : tracks.gains)
    if (!gains.k.empty()) return std::sqrt(static_cast<double>(gains.k.size()));
  return missing;
}

// A line for each head; up to six have a colour and a name each, more a place in a colour bar.
void add_layer_panel(Figure& figure, const TrackedMetrics& shown, std::int64_t layer) {
  Panel panel{
      .title = fmt::format("layer {}", layer), .x = shown.course().axis, .y = {.label = {"mean ‖k‖"}, .padding = 0.03}};
  const std::string data = fmt::format("layer{}", layer);
  const std::int64_t heads = shown.source->counts.key_heads;
  Table table = shown.table();
  for (std::int64_t head = 0; head < heads; ++head) {
    const Mark line = Mark::line(data, shown.course().name, fmt::format("K{}", head));
    panel.marks.push_back(heads <= most_named_heads
                              ? line.wide(1.3).named(line.y).coloured(category(static_cast<std::size_t>(head)))
                              : line.wide(0.9).coloured(by_value(head)));
    table.add(line.y, head_values(shown, "k_norm", layer, head));
  }
  figure.data.push_back({data, std::move(table)});
  figure.panels.push_back(std::move(panel));
}

Figure norm_divergence_figure(Figure figure, const RunTracks& tracks) {
  const auto shown = tracked(tracks, {"k_norm"});
  if (!shown || shown->moments.size() == 1)
    return group_figure(std::move(figure), tracks, {{.metric = "k_norm", .label = "mean ‖k‖"}});
  std::vector<std::int64_t> present;  // layers with a value, so that each panel has one
  for (std::int64_t layer = 0; layer < shown->source->counts.layers; ++layer)
    if (std::isfinite(finite_mean(layer_means(*shown, "k_norm", layer)))) present.push_back(layer);
  for (const std::size_t place : evenly_spaced(present.size(), most_panels))
    add_layer_panel(figure, *shown, present[place]);
  figure.colours = {ColourScale::ordered, {.kind = Axis::integers, .label = {"key head"}}};
  return figure;
}

std::string title_of(const Moment& moment, std::span<const Moment> all) {
  if (all.size() == 1 && moment.step == 0) return "";  // nothing is known of its training
  if (!course_of(all).in_tokens) return fmt::format("step {}", moment.step);
  return token_text(static_cast<double>(moment.tokens), static_cast<double>(all.back().tokens));
}

// Every head at one moment, layer by layer. A group has a shape, too: colours are not all.
void add_scatter_panel(Figure& figure, const Tracks& source, std::size_t moment) {
  const std::string data = fmt::format("m{}", figure.data.size());
  const std::int64_t heads = source.counts.query_heads;
  const auto norm_of = source.at("k_norm", moment), entropy_of = source.at("entropy", moment);
  Panel panel{.title = title_of(source.moments[moment], source.moments),
              .x = {.label = {"mean ‖k‖ of the key head"}, .padding = 0.04},
              .y = {.label = {"attention entropy (nats)"}, .padding = 0.04}};
  Numbers norm;
  for (std::int64_t i = 0; i < source.counts.layers * heads; ++i)
    norm.push_back(
        norm_of[static_cast<std::size_t>(i / heads * source.counts.key_heads + source.key_head_of(i % heads))]);
  for (const GroupLayers& group : layer_groups(source.counts.layers))
    panel.marks.push_back(of_group(Mark::points(data, "k_norm", "entropy"), group, heads)
                              .changed(&Mark::shape, static_cast<PointShape>(group.group))
                              .faded(0.62));
  Table table = head_table(source.counts.layers, heads, "q_head");
  table.add("k_norm", norm).add("entropy", Numbers(entropy_of.begin(), entropy_of.end()));
  figure.data.push_back({data, std::move(table)});
  figure.panels.push_back(std::move(panel));
}

Figure entropy_norm_figure(Figure figure, const RunTracks& tracks) {
  const auto shown = tracked(tracks, {"k_norm", "entropy"});
  for (const std::size_t place : evenly_spaced(shown ? shown->moments.size() : 0, 4))
    add_scatter_panel(figure, *shown->source, shown->moments[place]);
  return figure;
}

Figure key_profile_figure(Figure figure, const RunTracks& tracks) {
  const auto shown = tracked(tracks, {"k_norm"});
  if (!shown) return figure;
  const std::int64_t layers = shown->source->counts.layers;
  Integers layer;
  Numbers final, start;
  for (std::int64_t i = 0; i < layers; ++i) {
    const Numbers curve = layer_means(*shown, "k_norm", i);
    layer.push_back(i);
    final.push_back(curve.back());
    start.push_back(curve.front());
  }
  Table table("layers");
  table.add("layer", layer).add("final", final);
  Panel panel{.x = {.kind = Axis::integers, .label = {"layer"}, .grid = false}, .y = {.label = {"mean ‖k‖"}}};
  for (const GroupLayers& group : layer_groups(layers))
    panel.marks.push_back(of_group(Mark::box("layers", "layer", "", "final"), group, 1));
  if (shown->moments.size() > 1) {
    figure.title = "Final key norm by layer";
    table.add("start", start);
    panel.marks.push_back(
        Mark::segment("layers", "layer", "start", "start").wide(1.4).shifted(-0.4, 0.4).named("start"));
  }
  figure.data = {{"layers", std::move(table)}};
  figure.panels = {std::move(panel)};
  return figure;
}

}  // namespace

std::vector<Figure> tracking_figures(const TrackingFigureData& data) {
  const RunTracks& tracks = *data.tracks;
  const auto named = [&](const char* name, const char* title) {
    Figure figure{name, title, data.title};
    figure.nothing = "not tracked in this run";
    return figure;
  };
  const auto groups = [&](const char* name, const char* title, const std::vector<GroupPanel>& panels) {
    return group_figure(named(name, title), tracks, panels);
  };
  return {norm_divergence_figure(named("norm_divergence", "Key norm of every key head"), tracks),
          entropy_norm_figure(named("entropy_norm_scatter", "Entropy and key norm"), tracks),
          groups("effective_rank", "Effective rank of keys",
                 {{.metric = "k_pr_vector", .label = "PR of one key's components", .of_heads = true},
                  {.metric = "k_pr", .label = "PR of the keys' singular values", .of_heads = true}}),
          gamma_figure(named("gamma_heatmap", "Learned key gain γ"), tracks.gains),
          groups("key_norm_evolution", "Key norm",
                 {{.metric = "k_norm",
                   .label = "mean ‖k‖",
                   .references = {{.y = normalised_norm(tracks), .name = {"√dₖ: norm", "without gain"}}}}}),
          groups("outlier_magnitude", "Largest key component",
                 {{.metric = "k_max_abs", .label = "largest of all tokens"},
                  {.metric = "k_max_abs_mean", .label = "largest of a token, mean over tokens"}}),
          groups("latent_redundancy", "Similarity of keys", {{.metric = "k_cosine", .label = "mean cosine of pairs"}}),
          key_profile_figure(named("key_magnitude_profile", "Key norm by layer"), tracks),
          groups("qk_ratio", "Query and key norms",
                 {{.metric = "qk_ratio", .label = "query norm / key norm"},
                  {.metric = "q_norm", .label = "query norm, relative to its start", .growth = true},
                  {.metric = "k_norm", .label = "key norm, relative to its start", .growth = true}})};
}

}  // namespace headscope
