#include "heads/findings/norm_entropy.h"

#include <algorithm>
#include <cmath>

#include "stats/sample_moments.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

// Heads that have both values, layer by layer.
std::vector<HeadPoint> points_at(const Tracks& tracks, std::size_t moment) {
  std::vector<HeadPoint> points;
  for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer) {
    const std::span<const double> norms = tracks.at("k_norm", moment, layer, layer),
                                  entropies = tracks.at("entropy", moment, layer, layer);
    for (std::int64_t head = 0; head < tracks.counts.query_heads; ++head) {
      const double norm = norms[static_cast<std::size_t>(tracks.key_head_of(head))];
      const double entropy = entropies[static_cast<std::size_t>(head)];
      if (std::isfinite(norm) && std::isfinite(entropy)) points.push_back({layer, head, norm, entropy});
    }
  }
  return points;
}

std::vector<double> column(std::span<const HeadPoint> points, double HeadPoint::*value) {
  std::vector<double> values;
  for (const HeadPoint& point : points) values.push_back(point.*value);
  return values;
}

RankCorrelation correlation(std::span<const HeadPoint> points) {
  return rank_correlation(column(points, &HeadPoint::norm), column(points, &HeadPoint::entropy));
}

// Mean 0, variance 1; all 0 when constant.
std::vector<double> standardised(std::vector<double> values) {
  const SampleMoments sample = sample_moments(values);
  const double scale = sample.m2 > 0 ? 1 / std::sqrt(sample.m2) : 0;
  for (double& value : values) value = (value - sample.mean) * scale;
  return values;
}

// The first principal axis of two standardised values is the diagonal on the side of their correlation.
std::vector<double> principal_projection(std::span<const HeadPoint> points) {
  const std::vector<double> norms = standardised(column(points, &HeadPoint::norm)),
                            entropies = standardised(column(points, &HeadPoint::entropy));
  double covariance = 0;
  for (std::size_t i = 0; i < norms.size(); ++i) covariance += norms[i] * entropies[i];
  const double side = covariance > 0 ? 1 : -1;
  std::vector<double> projection;
  for (std::size_t i = 0; i < norms.size(); ++i)
    projection.push_back((norms[i] + side * entropies[i]) / std::sqrt(2.0));
  return projection;
}

HeadCluster cluster_of(std::span<const HeadPoint> points, std::span<const std::size_t> places) {
  HeadCluster cluster;
  for (const std::size_t place : places) cluster.heads.push_back(points[place]);
  cluster.norm = finite_mean(column(cluster.heads, &HeadPoint::norm));
  cluster.entropy = finite_mean(column(cluster.heads, &HeadPoint::entropy));
  return cluster;
}

Support support_of(const RankCorrelation& overall) {
  if (overall.high < 0) return Support::supported;
  return overall.low > 0 ? Support::contradicted : Support::undecided;
}

std::string correlation_text(const NormEntropy& found) {
  const RankCorrelation& all = found.overall;
  std::string text = fmt::format("\"High norm means sharp\" is {}",
                                 support_names[static_cast<std::size_t>(*found.high_norm_means_sharp)]);
  if (std::isnan(all.rho)) return text + ": norm or entropy does not vary, or fewer than three heads were measured.";
  text += fmt::format(": over {}, key norm and entropy have a rank correlation of {} ({}{}).",
                      counted(all.n, "query head"), number_text(all.rho),
                      std::isnan(all.low) ? "" : fmt::format("95 % interval {}, ", interval_text(all.low, all.high)),
                      p_text(all.p_value));
  if (found.shared_key_heads)
    text += " Query heads that share a key head are not independent: this interval is too narrow and this p too small.";
  const auto falling = std::ranges::count_if(found.layers, [](const RankCorrelation& layer) { return layer.rho < 0; });
  const auto known =
      std::ranges::count_if(found.layers, [](const RankCorrelation& layer) { return !std::isnan(layer.rho); });
  if (found.layers.size() > 1 && known > 0)
    text += fmt::format(" The correlation is negative in {} of {}.", falling,
                        counted(static_cast<std::size_t>(known), "layer"));
  return text;
}

std::string cluster_text(const NormEntropy& found) {
  if (std::isnan(found.cluster_test.p_value)) return "";
  if (!found.clusters_found())
    return fmt::format(" The heads do not fall into two clusters (dip test, {}).", p_text(found.cluster_test.p_value));
  return fmt::format(
      " The heads fall into two clusters (dip test, {}): {} of norm {} and entropy {}, {} of norm {} and "
      "entropy {}.",
      p_text(found.cluster_test.p_value), found.low_norm.heads.size(), number_text(found.low_norm.norm),
      number_text(found.low_norm.entropy), found.high_norm.heads.size(), number_text(found.high_norm.norm),
      number_text(found.high_norm.entropy));
}

ordered_json correlation_json(const RankCorrelation& one) {
  return {{"n", one.n}, {"rho", one.rho}, {"low", one.low}, {"high", one.high}, {"p_value", one.p_value}};
}

ordered_json cluster_json(const HeadCluster& cluster) {
  if (cluster.heads.empty()) return nullptr;
  ordered_json heads = ordered_json::array();
  for (const HeadPoint& head : cluster.heads)
    heads.push_back({{"layer", head.layer}, {"head", head.head}, {"k_norm", head.norm}, {"entropy", head.entropy}});
  return {{"mean_k_norm", cluster.norm}, {"mean_entropy", cluster.entropy}, {"heads", heads}};
}

Row cluster_row(const std::string& name, const HeadCluster& cluster) {
  std::vector<std::string> heads;
  for (const HeadPoint& head : cluster.heads) {
    if (heads.size() == most_listed) break;
    heads.push_back(head_text(HeadKind::query, head.layer, head.head));
  }
  if (cluster.heads.size() > most_listed) heads.push_back(fmt::format("{} more", cluster.heads.size() - most_listed));
  return {name, std::to_string(cluster.heads.size()), number_text(cluster.norm), number_text(cluster.entropy),
          joined(heads)};
}

}  // namespace

NormEntropy find_norm_entropy(const RunTracks& run, DipTester& tester) {
  const Tracks& tracks = source_for(run, {"k_norm", "entropy"});
  NormEntropy found;
  found.basis = basis_of(tracks, {"k_norm", "entropy"});
  if (!found.basis.not_tracked.empty()) {
    found.sentence = not_tracked_text(found.basis.not_tracked);
    return found;
  }
  for (std::size_t moment = 0; moment < tracks.moments.size(); ++moment)
    found.rho_over_time.push_back(correlation(points_at(tracks, moment)).rho);
  const std::vector<HeadPoint> points = points_at(tracks, tracks.moments.size() - 1);
  found.overall = correlation(points);
  for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer) {
    std::vector<HeadPoint> of_layer;
    std::ranges::copy_if(points, std::back_inserter(of_layer), [&](const auto& point) { return point.layer == layer; });
    found.layers.push_back(correlation(of_layer));
  }
  found.shared_key_heads = tracks.counts.query_heads > tracks.counts.key_heads;
  found.high_norm_means_sharp = support_of(found.overall);
  const TwoGroups groups = two_groups(principal_projection(points), tester);
  found.cluster_test = groups.test;
  if (groups.found()) {
    found.low_norm = cluster_of(points, groups.low);
    found.high_norm = cluster_of(points, groups.high);
  }
  found.sentence = correlation_text(found) + cluster_text(found);
  return found;
}

ordered_json to_json(const NormEntropy& found) {
  ordered_json layers = ordered_json::array();
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
    layers.push_back({{"layer", layer}});
    layers.back().update(correlation_json(found.layers[layer]));
  }
  ordered_json object = answer_json(found.sentence, found.basis);
  object["high_norm_means_sharp"] =
      found.high_norm_means_sharp ? ordered_json(support_names[static_cast<std::size_t>(*found.high_norm_means_sharp)])
                                  : ordered_json();
  object["overall"] = correlation_json(found.overall);
  object["shared_key_heads"] = found.shared_key_heads;
  object["steps"] = steps_json(found.basis);
  object["rho_over_time"] = list_json(found.rho_over_time);
  object["layers"] = layers;
  object["clusters"] = {{"found", decided(found.cluster_test)},
                        {"dip_test", dip_json(found.cluster_test)},
                        {"low_norm", cluster_json(found.low_norm)},
                        {"high_norm", cluster_json(found.high_norm)}};
  return object;
}

std::string tables_of(const NormEntropy& found) {
  std::vector<Row> rows, clusters;
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
    const RankCorrelation& one = found.layers[layer];
    rows.push_back({std::to_string(layer), std::to_string(one.n), number_text(one.rho),
                    interval_text(one.low, one.high), p_cell(one.p_value)});
  }
  if (found.clusters_found())
    clusters = {cluster_row("low norm", found.low_norm), cluster_row("high norm", found.high_norm)};
  return table_text({"layer", "query heads", "rank correlation of norm and entropy", "95 % interval", "p"}, rows) +
         table_text({"cluster", "query heads", "mean key norm", "mean entropy (nats)", "which"}, clusters);
}

}  // namespace headscope
