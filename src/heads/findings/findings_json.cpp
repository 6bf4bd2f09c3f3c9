#include <cmath>

#include "heads/findings/findings.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

ordered_json number(double value) {
  return std::isfinite(value) ? ordered_json(value) : ordered_json();
}

ordered_json numbers(std::span<const double> values) {
  if (values.empty()) return nullptr;
  ordered_json array = ordered_json::array();
  for (const double value : values) array.push_back(number(value));
  return array;
}

ordered_json moment(const Moment& at) {
  return {{"step", at.step}, {"tokens", at.tokens}};
}

template <class T>
ordered_json known(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}
ordered_json known(const std::optional<Moment>& value) {
  return value ? moment(*value) : ordered_json();
}

// The answer in words and what it rests on; an answer's own numbers follow.
ordered_json answer(const std::string& sentence, const Basis& basis) {
  const bool any = !basis.moments.empty();
  return {{"sentence", sentence},
          {"source", any ? ordered_json(basis.source) : ordered_json()},
          {"start", any ? moment(basis.moments.front()) : ordered_json()},
          {"end", any ? moment(basis.moments.back()) : ordered_json()},
          {"not_tracked", basis.not_tracked}};
}

ordered_json steps(const Basis& basis) {
  ordered_json array = ordered_json::array();
  for (const Moment& at : basis.moments) array.push_back(at.step);
  return array;
}

ordered_json dip(const DipTest& test) {
  return {{"n", test.n}, {"dip", number(test.dip)}, {"p_value", number(test.p_value)}};
}

// Whether a test found two populations; null when it could not tell.
ordered_json decided(const DipTest& test) {
  return std::isnan(test.p_value) ? ordered_json() : ordered_json(test.rejects());
}

ordered_json norm_group(const LayerSplit& split, std::span<const std::size_t> heads) {
  std::vector<double> norms;
  for (const std::size_t head : heads) norms.push_back(split.norms[head]);
  return {{"heads", std::vector(heads.begin(), heads.end())}, {"mean_norm", number(finite_mean(norms))}};
}

ordered_json to_json(const NormSplit& split) {
  ordered_json layers = ordered_json::array();
  for (const LayerSplit& layer : split.layers) {
    layers.push_back({{"layer", layer.layer},
                      {"k_norm", numbers(layer.norms)},
                      {"mean_k_norm", number(layer.mean)},
                      {"between_share", number(layer.between_share)},
                      {"begins", known(layer.begins)},
                      {"two_populations", decided(layer.groups.test)},
                      {"dip_test", dip(layer.groups.test)},
                      {"low", layer.groups.found() ? norm_group(layer, layer.groups.low) : ordered_json()},
                      {"high", layer.groups.found() ? norm_group(layer, layer.groups.high) : ordered_json()},
                      {"share_over_time", numbers(layer.share_over_time)}});
  }
  ordered_json object = answer(split.sentence, split.basis);
  object["two_populations"] = decided(split.within_layers);
  object["dip_test"] = dip(split.within_layers);
  object["layers_with_two_populations"] = split.named_layers;
  object["between_share"] = number(split.between_share);
  object["begins"] = known(split.begins);
  object["steps"] = steps(split.basis);
  object["share_over_time"] = numbers(split.share_over_time);
  object["layers"] = layers;
  return object;
}

ordered_json correlation(const RankCorrelation& one) {
  return {{"n", one.n},
          {"rho", number(one.rho)},
          {"low", number(one.low)},
          {"high", number(one.high)},
          {"p_value", number(one.p_value)}};
}

ordered_json cluster(const HeadCluster& one) {
  if (one.heads.empty()) return nullptr;
  ordered_json heads = ordered_json::array();
  for (const HeadPoint& head : one.heads)
    heads.push_back(
        {{"layer", head.layer}, {"head", head.head}, {"k_norm", number(head.norm)}, {"entropy", number(head.entropy)}});
  return {{"mean_k_norm", number(one.norm)}, {"mean_entropy", number(one.entropy)}, {"heads", heads}};
}

ordered_json to_json(const NormEntropy& found) {
  ordered_json layers = ordered_json::array();
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
    ordered_json one = {{"layer", layer}};
    one.update(correlation(found.layers[layer]));
    layers.push_back(one);
  }
  ordered_json object = answer(found.sentence, found.basis);
  object["high_norm_means_sharp"] =
      found.high_norm_means_sharp ? ordered_json(support_names[static_cast<std::size_t>(*found.high_norm_means_sharp)])
                                  : ordered_json();
  object["overall"] = correlation(found.overall);
  object["shared_key_heads"] = found.shared_key_heads;
  object["steps"] = steps(found.basis);
  object["rho_over_time"] = numbers(found.rho_over_time);
  object["layers"] = layers;
  object["clusters"] = {{"found", decided(found.cluster_test)},
                        {"dip_test", dip(found.cluster_test)},
                        {"low_norm", cluster(found.low_norm)},
                        {"high_norm", cluster(found.high_norm)}};
  return object;
}

ordered_json curve(const GroupCurve& one) {
  return {{"start", number(one.start)},
          {"lowest", number(one.lowest)},
          {"lowest_at", known(one.lowest_at)},
          {"end", number(one.end)}};
}

ordered_json to_json(const RankCollapse& found) {
  ordered_json ranks;
  for (const std::string_view metric : effective_ranks) ranks[std::string(metric)] = nullptr;
  for (const RankCurve& rank : found.curves)
    ranks[std::string(rank.metric)][std::string(name_of(rank.group))] = curve(rank.curve);
  ordered_json privileged = ordered_json::array();
  for (const PrivilegedDimension& one : found.privileged)
    privileged.push_back({{"layer", one.layer},
                          {"head", one.head},
                          {"dimension", known(one.dimension)},
                          {"k_top_share", number(one.top_share)},
                          {"k_top_energy", number(one.top_energy)}});
  ordered_json object = answer(found.sentence, found.ranks);
  for (const std::string& metric : found.outliers.not_tracked) object["not_tracked"].push_back(metric);
  object["effective_rank"] = ranks;
  object["outlier_source"] = found.outliers.source;  // of what follows
  object["one_hot_share"] = number(found.one_hot_share());
  object["one_hot_heads"] = found.axis_heads == 0 ? ordered_json() : ordered_json(found.one_hot);
  object["privileged_dimensions"] = found.share_heads == 0 ? ordered_json() : privileged;
  return object;
}

ordered_json growth(const Growth& one) {
  if (one.heads == 0) return nullptr;
  return {{"mean", number(one.mean)},
          {"low", number(one.low)},
          {"high", number(one.high)},
          {"heads", one.heads},
          {"grown_heads", one.grown_heads},
          {"shrunk_heads", one.shrunk_heads},
          {"grown", one.grown},
          {"shrunk", one.shrunk}};
}

ordered_json growths(const VolumeKnobFinding& found) {
  ordered_json object = answer(found.sentence, found.basis);
  for (const Growth* one : {&found.queries, &found.keys, &found.ratio}) object[std::string(one->metric)] = growth(*one);
  return object;
}

ordered_json to_json(const KeyEvolution& found) {
  ordered_json groups;
  for (const GroupEvolution& one : found.groups) {
    ordered_json object = {{"k_norm", curve(one.norm)},
                           {"dips", known(one.dips)},
                           {"rises", known(one.rises)},
                           {"rise", number(one.rise)},
                           {"energy_in_one_dimension", number(one.energy_in_one_dimension)},
                           {"k_top_energy", number(one.top_energy)},
                           {"k_cosine_start", number(one.cosine_start)},
                           {"k_cosine_end", number(one.cosine_end)}};
    groups[std::string(name_of(one.group))] = object;
  }
  ordered_json object = answer(found.sentence, found.basis);
  object["groups"] = groups;
  object["profile"] = numbers(found.profile);
  object["lowest_layer"] = known(found.lowest_layer);
  object["depth_correlation"] = number(found.depth_correlation);
  object["checkmark"] = known(found.checkmark);
  return object;
}

ordered_json rules(std::span<const Rule> list) {
  ordered_json object;
  for (const Rule& rule : list) object[std::string(rule.name)] = rule.sentence;
  return object;
}

}  // namespace

ordered_json to_json(const Findings& findings) {
  const std::optional<VolumeKnob> knob = findings.volume_knob.knob;
  return {{"norm_split", to_json(findings.norm_split)},
          {"norm_entropy", to_json(findings.norm_entropy)},
          {"rank_collapse", to_json(findings.rank_collapse)},
          {"volume_knob", knob ? ordered_json(volume_knob_names[static_cast<std::size_t>(*knob)]) : ordered_json()},
          {"growth", growths(findings.volume_knob)},
          {"key_evolution", to_json(findings.key_evolution)},
          {"rules",
           {{"norm_split", rules(norm_split_rules)},
            {"norm_entropy", rules(norm_entropy_rules)},
            {"rank_collapse", rules(rank_collapse_rules)},
            {"growth", rules(volume_knob_rules)},
            {"key_evolution", rules(key_evolution_rules)}}}};
}

}  // namespace headscope
