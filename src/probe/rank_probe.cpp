#include "probe/rank_probe.h"

#include <utility>

#include "stats/sample_moments.h"

namespace headscope {

RankProbe::RankProbe(const MetricSelection& chosen, Gains gains, bool with_errors)
    : gains_(std::move(gains)),
      with_spreads_(chosen.has(MetricGroup::score)),
      with_errors_(with_errors && chosen.has(MetricGroup::other_rank)) {
  for (const Metric& metric : head_metrics())
    if (metric.group == MetricGroup::other_rank && chosen.has(metric.name)) ranks_.insert(metric.name);
}

void RankProbe::observe(const HeadVectors& vectors) {
  if (ranks_.empty() && !with_spreads_) return;
  RankMeasures needed = ranks_;
  if (with_spreads_) needed.insert("score_std");
  if (with_errors_) needed.insert("k_pr");
  std::vector<RankSums> by_sequence = {
      rank_sums(vectors, needed, gains_.k.empty() ? std::vector<double>() : gains_.k[layers_.size()])};
  if (with_errors_) {
    move_to_cpu(by_sequence);
    add_replicates(by_sequence.front());
  }
  if (with_spreads_) spreads_.push_back(score_std(by_sequence.front()));
  layers_.push_back(over_all_sequences(by_sequence.front()));
}

void RankProbe::add_replicates(const RankSums& by_sequence) {
  RankMeasures measures = ranks_;
  measures.insert("k_pr");
  const std::vector<RankSums> others = {without_each_sequence(by_sequence)};
  const std::vector<HeadValues> without = rank_values(others, measures).front();
  for (const std::string_view measure : measures) {
    std::vector<double>& means = replicates_[std::string(measure)].emplace_back();
    for (const HeadValues& values : without) means.push_back(rough_mean(values.at(measure)));
  }
}

void RankProbe::add_to(std::vector<HeadValues>& layers) {
  move_to_cpu(layers_);
  // Without QK-Norm it is k_pr, which another measurement may have given.
  RankMeasures measures = ranks_;
  const bool is_known = gains_.k.empty() && !layers.empty() && layers.front().contains("k_pr");
  const bool copied = is_known && measures.erase("k_pr_before_gain") > 0;
  std::vector<std::vector<HeadValues>> ranks = rank_values(layers_, measures);
  const at::Tensor spreads_lh = with_spreads_ ? at::stack(spreads_).cpu() : at::Tensor();
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    HeadValues& values = layers[layer];
    if (!measures.empty()) values.merge(ranks[layer].front());
    if (copied) values["k_pr_before_gain"] = values.at("k_pr");
    if (with_spreads_) values["score_std"] = to_doubles(spreads_lh[static_cast<std::int64_t>(layer)]);
  }
}

std::optional<RankErrors> RankProbe::errors() const {
  if (!with_errors_) return std::nullopt;
  RankErrors errors;
  for (const auto& [measure, layers] : replicates_) {
    std::vector<double> means(layers.front().size());
    for (const std::vector<double>& layer : layers) {
      errors.layers[measure].push_back(jackknife_error(layer));
      for (std::size_t i = 0; i < means.size(); ++i) means[i] += layer[i] / static_cast<double>(layers.size());
    }
    errors.mean[measure] = jackknife_error(means);
  }
  return errors;
}

}  // namespace headscope
