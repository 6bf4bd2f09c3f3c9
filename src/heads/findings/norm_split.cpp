#include "heads/findings/norm_split.h"

#include <algorithm>
#include <cmath>

#include "stats/sample_moments.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

std::optional<Moment> beginning(std::span<const double> shares, std::span<const Moment> moments) {
  if (moments.size() < 2) return std::nullopt;
  std::size_t first = shares.size();
  while (first > 0 && shares[first - 1] > 0.5) --first;
  return first == shares.size() ? std::nullopt : std::optional(moments[first]);
}

LayerSplit split_of(const Tracks& tracks, std::int64_t layer, DipTester& tester) {
  LayerSplit split;
  split.layer = layer;
  for (std::size_t moment = 0; moment < tracks.moments.size(); ++moment)
    split.share_over_time.push_back(
        between_head_share(tracks.at("k_norm", moment, layer, layer), tracks.at("k_norm_std", moment, layer, layer)));
  const std::span<const double> norms = tracks.at("k_norm", tracks.moments.size() - 1, layer, layer);
  split.norms.assign(norms.begin(), norms.end());
  split.mean = finite_mean(norms);
  split.between_share = split.share_over_time.back();
  split.begins = beginning(split.share_over_time, tracks.moments);
  split.groups = two_groups(norms, tester);
  return split;
}

// One head leaves zeros, and two always lie on opposite sides of their mean: neither can show a population.
DipTest test_within_layers(const std::vector<LayerSplit>& layers, DipTester& tester) {
  std::vector<double> residuals;
  for (const LayerSplit& layer : layers) {
    if (layer.groups.test.n < 3) continue;
    for (const double norm : layer.norms)
      if (std::isfinite(norm)) residuals.push_back(norm - layer.mean);
  }
  return tester.test(residuals);
}

void name_layers(NormSplit& split) {
  for (const LayerSplit& layer : split.layers) split.tested_layers += std::isnan(layer.groups.test.p_value) ? 0 : 1;
  for (const LayerSplit& layer : split.layers)
    if (layer.groups.test.p_value * static_cast<double>(split.tested_layers) < 0.05)
      split.named_layers.push_back(layer.layer);
}

// "Layers 3 and 5 have"
std::string layers_have(std::span<const std::int64_t> layers) {
  std::vector<std::string> names;
  for (const std::int64_t layer : layers) names.push_back(std::to_string(layer));
  return layers.size() == 1 ? fmt::format("Layer {} has", names.front()) : fmt::format("Layers {} have", joined(names));
}

// "a layer has 2", "4 such heads have a known norm"
std::string too_few_text(const NormSplit& split) {
  const std::size_t heads = split.layers.empty() ? 0 : split.layers.front().norms.size();
  if (heads < 3) return fmt::format("a layer has {}", heads);
  return fmt::format("{} of them {} measured", split.within_layers.n, split.within_layers.n == 1 ? "was" : "were");
}

std::string populations_text(const NormSplit& split) {
  const DipTest& all = split.within_layers;
  if (std::isnan(all.p_value))
    return fmt::format(
        "Whether the key heads of a layer are one population or two cannot be tested: the test needs layers with three "
        "key heads or more, and four such heads in all; here {}.",
        too_few_text(split));
  std::string text;
  if (all.rejects())
    text = "Within layers the heads are more than one population by key norm";
  else if (!split.named_layers.empty())
    text = layers_have(split.named_layers) + " more than one population of heads by key norm, the model as a whole not";
  else
    text = "Within layers the heads show no second population by key norm";
  text += fmt::format(" (dip test over {}, {}).", counted(all.n, "key head"), p_text(all.p_value));
  if (split.tested_layers > 1)
    text += fmt::format(" Tested one by one, {} of {} layers have p < 0.05; chance alone gives {} on average.",
                        std::ranges::count_if(split.layers, [](const auto& layer) { return layer.groups.found(); }),
                        split.tested_layers, number_text(0.05 * static_cast<double>(split.tested_layers)));
  return text;
}

std::string share_text(const NormSplit& split) {
  if (!split.basis.not_tracked.empty())
    return fmt::format(" How much of the variance lies between heads is not known: {} was not tracked.",
                       joined(split.basis.not_tracked));
  if (std::isnan(split.between_share)) return "";
  std::string text = fmt::format(" Differences between heads make {} of the variance of the key norm",
                                 percent_text(split.between_share, {0.5}));
  if (!split.basis.has_course()) return text + ".";
  text += fmt::format(" at step {} ({} at step {}), ", split.basis.moments.back().step,
                      percent_text(split.share_over_time.front()), split.basis.moments.front().step);
  if (!split.begins) return text + "not above one half at the end.";
  return text + (*split.begins == split.basis.moments.front()
                     ? "above one half all the time."
                     : fmt::format("above one half since step {}.", split.begins->step));
}

double mean_norm(const LayerSplit& layer, std::span<const std::size_t> heads) {
  std::vector<double> norms;
  for (const std::size_t head : heads) norms.push_back(layer.norms[head]);
  return finite_mean(norms);
}

// Null where two populations were not found.
ordered_json population_json(const LayerSplit& layer, const std::vector<std::size_t>& heads) {
  if (!layer.groups.found()) return nullptr;
  return {{"heads", heads}, {"mean_norm", mean_norm(layer, heads)}};
}

// "4 of norm 3.1, 4 of norm 15.2" where two populations were found.
std::string population_cell(const LayerSplit& layer) {
  if (!layer.groups.found()) return "–";
  const auto& [test, low, high] = layer.groups;
  return fmt::format("{} of norm {}, {} of norm {}", low.size(), number_text(mean_norm(layer, low)), high.size(),
                     number_text(mean_norm(layer, high)));
}

std::string norm_range(const LayerSplit& layer) {
  std::vector<double> norms = layer.norms;
  std::erase_if(norms, [](double norm) { return !std::isfinite(norm); });
  if (norms.empty()) return "–";
  const auto [low, high] = std::ranges::minmax(norms);
  return interval_text(low, high);
}

}  // namespace

double between_head_share(std::span<const double> norms, std::span<const double> standard_deviations) {
  if (norms.size() != standard_deviations.size()) return missing;  // one of them was not tracked
  std::vector<double> means, variances;
  for (std::size_t i = 0; i < norms.size(); ++i) {
    if (!std::isfinite(norms[i]) || !std::isfinite(standard_deviations[i])) continue;
    means.push_back(norms[i]);
    variances.push_back(standard_deviations[i] * standard_deviations[i]);
  }
  if (means.size() < 2) return missing;
  const SampleMoments heads = sample_moments(means);
  const double between = heads.m2, within = finite_mean(variances);
  const double rounding = 1e-6 * heads.mean;  // of float32, where all norms are equal
  return between + within <= rounding * rounding ? 0 : between / (between + within);
}

NormSplit find_norm_split(const RunTracks& run, DipTester& tester) {
  const Tracks& tracks = source_for(run, {"k_norm", "k_norm_std"});
  NormSplit split;
  split.basis = basis_of(tracks, {"k_norm", "k_norm_std"});
  if (!tracks.has("k_norm")) {
    split.sentence = not_tracked_text(split.basis.not_tracked);
    return split;
  }
  for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer)
    split.layers.push_back(split_of(tracks, layer, tester));
  for (std::size_t moment = 0; moment < tracks.moments.size(); ++moment) {
    std::vector<double> shares;
    for (const LayerSplit& layer : split.layers) shares.push_back(layer.share_over_time[moment]);
    split.share_over_time.push_back(finite_mean(shares));
  }
  split.between_share = split.share_over_time.back();
  split.begins = beginning(split.share_over_time, tracks.moments);
  split.within_layers = test_within_layers(split.layers, tester);
  name_layers(split);
  split.sentence = populations_text(split) + share_text(split);
  return split;
}

ordered_json to_json(const NormSplit& split) {
  ordered_json layers = ordered_json::array();
  for (const LayerSplit& layer : split.layers)
    layers.push_back({{"layer", layer.layer},
                      {"k_norm", list_json(layer.norms)},
                      {"mean_k_norm", layer.mean},
                      {"between_share", layer.between_share},
                      {"begins", known(layer.begins)},
                      {"two_populations", decided(layer.groups.test)},
                      {"dip_test", dip_json(layer.groups.test)},
                      {"low", population_json(layer, layer.groups.low)},
                      {"high", population_json(layer, layer.groups.high)},
                      {"share_over_time", list_json(layer.share_over_time)}});
  ordered_json object = answer_json(split.sentence, split.basis);
  object["two_populations"] = decided(split.within_layers);
  object["dip_test"] = dip_json(split.within_layers);
  object["layers_with_two_populations"] = split.named_layers;
  object["between_share"] = split.between_share;
  object["begins"] = known(split.begins);
  object["steps"] = steps_json(split.basis);
  object["share_over_time"] = list_json(split.share_over_time);
  object["layers"] = layers;
  return object;
}

std::string tables_of(const NormSplit& split) {
  std::vector<Row> rows;
  for (const LayerSplit& layer : split.layers)
    rows.push_back({std::to_string(layer.layer), number_text(layer.mean), norm_range(layer),
                    percent_text(layer.between_share, {0.5}), step_cell(layer.begins),
                    p_cell(layer.groups.test.p_value), population_cell(layer)});
  Row head = {"layer",
              "mean key norm",
              "range of its heads",
              "between-head share",
              "split since step",
              "p of the dip test",
              "populations"};
  if (!split.basis.has_course()) {
    constexpr std::ptrdiff_t since = 4;
    head.erase(head.begin() + since);
    for (Row& row : rows) row.erase(row.begin() + since);
  }
  return table_text(head, rows);
}

}  // namespace headscope
