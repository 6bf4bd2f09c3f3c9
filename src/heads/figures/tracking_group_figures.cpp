// The figures of a tracked run by group of layers.
#include "core/missing.h"
#include "figures/figure_parts.h"
#include "heads/figures/group_figure.h"
#include "heads/figures/tracking_figures.h"

namespace headscope {
namespace {

// The norm that RMS normalisation alone gives a vector of this many components: the root of d_k.
double normalised_norm(const RunTracks& tracks) {
  for (const LayerGains& gains : tracks.gains)
    if (!gains.k.empty()) return std::sqrt(static_cast<double>(gains.k.size()));
  return missing;
}

}  // namespace

Figure effective_rank_figure(const TrackingFigureData& data) {
  return group_figure("effective_rank", "Effective rank of keys", data.title, *data.tracks,
                      {{.metric = "k_pr_vector", .label = "PR of one key's components", .quartiles = true},
                       {.metric = "k_pr", .label = "PR of the keys' singular values", .quartiles = true}});
}

Figure key_norm_figure(const TrackingFigureData& data) {
  return group_figure("key_norm_evolution", "Key norm", data.title, *data.tracks,
                      {{.metric = "k_norm",
                        .label = "mean ‖k‖",
                        .reference = {.value = normalised_norm(*data.tracks), .text = "'√d_k'"}}});
}

Figure outlier_figure(const TrackingFigureData& data) {
  return group_figure("outlier_magnitude", "Largest key component", data.title, *data.tracks,
                      {{.metric = "k_max_abs", .label = "largest of all tokens"},
                       {.metric = "k_max_abs_mean", .label = "largest of a token, mean over tokens"}});
}

Figure redundancy_figure(const TrackingFigureData& data) {
  return group_figure("latent_redundancy", "Similarity of keys", data.title, *data.tracks,
                      {{.metric = "k_cosine", .label = "mean cosine of pairs"}});
}

Figure qk_ratio_figure(const TrackingFigureData& data) {
  return group_figure("qk_ratio", "Query and key norms", data.title, *data.tracks,
                      {{.metric = "qk_ratio", .label = "query norm / key norm"},
                       {.metric = "q_norm", .label = "query norm, relative to its start", .growth = true},
                       {.metric = "k_norm", .label = "key norm, relative to its start", .growth = true}});
}

Figure key_profile_figure(const TrackingFigureData& data) {
  const std::string name = "key_magnitude_profile";
  const auto shown = tracked(*data.tracks, {"k_norm"});
  const bool has_start = shown && shown->moments.size() > 1;
  const std::string_view what = has_start ? "Final key norm by layer" : "Key norm by layer";
  if (!shown) return empty_figure(name, what, data.title, not_tracked);
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
  std::vector<double> values = final;
  if (has_start) {
    table.add("start", start);
    values.insert(values.end(), start.begin(), start.end());
  }
  values.push_back(0);
  Axis y = round_axis(values);
  y.high += 0.02 * (y.high - y.low);
  Figure figure{.name = name, .height = 300, .data = {{"layers", table}}};
  const Margins around{.left = left_margin(y), .right = 16, .top = 50};
  std::vector<Script> clauses;
  for (const GroupLayers& group : layer_groups(layers))
    if (std::isfinite(finite_mean(std::span(final).subspan(static_cast<std::size_t>(group.first),
                                                           static_cast<std::size_t>(group.last - group.first + 1)))))
      clauses.push_back(
          format_script("layers every ::{}::{} using \"layer\":\"final\":(0.8) with boxes lc rgb {} title {}",
                        group.first, group.last, name_in_script(group.group), gnuplot_text(legend_of(group))));
  if (has_start && std::isfinite(finite_mean(start)))
    clauses.emplace_back(
        "layers using (column(\"layer\")-0.4):\"start\":(0.8):(0) with vectors nohead lc rgb ink lw 1.4 title 'start'");
  figure.setup = frame_commands(figure, around, what, data.title) + legend_in_rows(figure, around, 1) +
                 axis_labels(figure, "'layer'", "'mean ‖k‖'") + "set grid noxtics ytics\n" +
                 axis_commands("x", integer_axis(0, layers - 1, 16)) + axis_commands("y", y);
  figure.plot = plot_command(clauses);
  return figure;
}

}  // namespace headscope
