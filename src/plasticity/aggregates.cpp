#include "plasticity/aggregates.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "figures/figure.h"

namespace headscope {
namespace {

using HeadKey = std::pair<std::int64_t, std::int64_t>;  // layer, q_head

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  [[nodiscard]] double value() const { return count_ == 0 ? missing : sum_ / static_cast<double>(count_); }
  [[nodiscard]] std::int64_t count() const { return count_; }

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

// The weights of every head, heaviest first.
std::map<HeadKey, std::vector<double>> sorted_weights(const Table& components) {
  check_heads(components);
  std::map<HeadKey, std::vector<double>> weights;
  const auto& layer = components.integers("layer");
  const auto& q_head = components.integers("q_head");
  const Numbers weight = components.numbers(components.has("weight") ? "weight" : "component_weight");
  for (std::size_t i = 0; i < components.rows(); ++i) {
    auto& of_head = weights[{layer[i], q_head[i]}];
    if (std::isfinite(weight[i])) of_head.push_back(weight[i]);
  }
  for (auto& [head, values] : weights) std::sort(values.begin(), values.end(), std::greater<>());
  return weights;
}

// Which places of a figure few heads have: fewer than half of those of the layers that have the place at all, where a
// layer counts as many heads as have its most common place. A bucket of few positions that only some heads kept would
// show a value of these alone, and of few queries. Layers whose window does not reach a place do not count there.
template <class Place>
class RarePlaces {
 public:
  void add(const Place& place, std::int64_t layer) { most_[layer] = std::max(most_[layer], ++heads_[place][layer]); }
  [[nodiscard]] bool contains(const Place& place) const {
    const auto found = heads_.find(place);
    if (found == heads_.end()) return false;
    std::int64_t heads = 0, expected = 0;
    for (const auto& [layer, count] : found->second) {
      heads += count;
      expected += most_.at(layer);
    }
    return 2 * heads < expected;
  }

 private:
  std::map<Place, std::map<std::int64_t, std::int64_t>> heads_;  // by layer
  std::map<std::int64_t, std::int64_t> most_;                    // of each layer
};

// The mean over each head's cells at each distance; cells without a value do not count, nor distances that few heads
// have.
std::map<std::int64_t, std::map<HeadKey, Mean>> heads_by_distance(const std::vector<BucketCell>& cells) {
  std::map<std::int64_t, std::map<HeadKey, Mean>> means;
  for (const BucketCell& cell : cells)
    if (std::isfinite(cell.value)) means[cell.q_bucket - cell.k_bucket][{cell.layer, cell.q_head}].add(cell.value);
  RarePlaces<std::int64_t> rare;
  for (const auto& [distance, heads] : means)
    for (const auto& [head, mean] : heads) rare.add(distance, head.first);
  std::erase_if(means, [&](const auto& distance) { return rare.contains(distance.first); });
  return means;
}

}  // namespace

std::vector<HeadValue> head_plasticity(const PlasticityTables& tables) {
  check_heads(tables.heads);
  const auto& layer = tables.heads.integers("layer");
  const auto& q_head = tables.heads.integers("q_head");
  const Numbers value = tables.heads.numbers("ap_overall");
  std::map<HeadKey, HeadValue> heads;
  for (std::size_t i = 0; i < tables.heads.rows(); ++i)
    heads[{layer[i], q_head[i]}] = {.layer = layer[i], .q_head = q_head[i], .value = value[i]};
  if (tables.uncertainty) {
    const Table& table = *tables.uncertainty;
    const auto& of_layer = table.integers("layer");
    const auto& of_head = table.integers("q_head");
    const Numbers low = table.numbers("low");
    const Numbers high = table.numbers("high");
    for (std::size_t i = 0; i < table.rows(); ++i) {
      const auto found = heads.find({of_layer[i], of_head[i]});
      if (found == heads.end() || !std::isfinite(low[i]) || !std::isfinite(high[i])) continue;
      found->second.low = low[i];
      found->second.high = high[i];
    }
  }
  std::vector<HeadValue> result;
  for (const auto& [key, head] : heads) result.push_back(head);
  return result;
}

std::vector<HeadValue> effective_components(const PlasticityTables& tables) {
  std::vector<HeadValue> result;
  for (const auto& [head, weights] : sorted_weights(tables.components)) {
    double entropy = 0;
    for (const double w : weights)
      if (w > 0) entropy -= w * std::log(w);
    result.push_back(
        {.layer = head.first, .q_head = head.second, .value = weights.empty() ? missing : std::exp(entropy)});
  }
  return result;
}

std::vector<LayerSpread> spread_by_layer(const std::vector<HeadValue>& heads) {
  std::map<std::int64_t, std::vector<double>> values;
  for (const HeadValue& head : heads)
    if (std::isfinite(head.value)) values[head.layer].push_back(head.value);
  std::vector<LayerSpread> result;
  for (const auto& [layer, of_layer] : values) result.push_back({quartiles(of_layer), layer, std::ssize(of_layer)});
  return result;
}

std::vector<BucketCell> bucket_cells(const PlasticityTables& tables) {
  const Table& table = tables.cells;
  check_heads(table);
  check_integers(table.integers("q_bucket"), "q_bucket", most_bucket);
  check_integers(table.integers("k_bucket"), "k_bucket", most_bucket);
  const auto& layer = table.integers("layer");
  const auto& q_head = table.integers("q_head");
  const auto& q_bucket = table.integers("q_bucket");
  const auto& k_bucket = table.integers("k_bucket");
  const Numbers value = table.numbers(table.has("plasticity") ? "plasticity" : "ap_bucket");
  const bool sized = tables.cell_sizes && tables.cell_sizes->rows() == table.rows() && table.rows() > 0 &&
                     tables.cell_sizes->has("n_queries");
  const Integers sizes = sized ? tables.cell_sizes->integers("n_queries") : Integers(table.rows(), 1);
  const std::int64_t largest = sized ? *std::max_element(sizes.begin(), sizes.end()) : 1;
  std::vector<BucketCell> cells;
  cells.reserve(table.rows());
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const double shown = 20 * sizes[i] < largest ? missing : value[i];
    cells.push_back({.layer = layer[i],
                     .q_head = q_head[i],
                     .q_bucket = q_bucket[i],
                     .k_bucket = k_bucket[i],
                     .value = shown,
                     .n_heads = std::isfinite(shown) ? 1 : 0});
  }
  return cells;
}

std::vector<BucketCell> mean_over_heads(const std::vector<BucketCell>& cells) {
  using Buckets = std::pair<std::int64_t, std::int64_t>;  // of queries, of keys
  std::map<Buckets, Mean> means;
  RarePlaces<Buckets> rare;
  for (const BucketCell& cell : cells) {
    const Buckets buckets(cell.q_bucket, cell.k_bucket);
    Mean& mean = means[buckets];
    if (!std::isfinite(cell.value)) continue;
    mean.add(cell.value);
    rare.add(buckets, cell.layer);
  }
  std::erase_if(means, [&](const auto& cell) { return rare.contains(cell.first); });
  std::vector<BucketCell> result;
  for (const auto& [buckets, mean] : means)
    result.push_back(
        {.q_bucket = buckets.first, .k_bucket = buckets.second, .value = mean.value(), .n_heads = mean.count()});
  return result;
}

std::vector<DistanceSummary> plasticity_by_distance(const std::vector<BucketCell>& cells) {
  std::vector<DistanceSummary> result;
  for (const auto& [distance, heads] : heads_by_distance(cells)) {
    Mean mean;
    std::vector<double> values;
    for (const auto& [head, of_head] : heads) {
      mean.add(of_head.value());
      values.push_back(of_head.value());
    }
    result.push_back({quartiles(values), distance, mean.value(), mean.count()});
  }
  return result;
}

std::vector<LayerDistance> layer_plasticity_by_distance(const std::vector<BucketCell>& cells) {
  std::map<std::pair<std::int64_t, std::int64_t>, Mean> means;  // layer, distance
  for (const auto& [distance, heads] : heads_by_distance(cells))
    for (const auto& [head, of_head] : heads) means[{head.first, distance}].add(of_head.value());
  std::vector<LayerDistance> result;
  for (const auto& [key, mean] : means)
    result.push_back({.layer = key.first, .distance = key.second, .mean = mean.value()});
  return result;
}

std::vector<CumulativeShare> cumulative_component_share(const PlasticityTables& tables) {
  std::map<std::int64_t, std::vector<Mean>> shares;  // by layer, then by number of components
  for (const auto& [head, weights] : sorted_weights(tables.components)) {
    auto& of_layer = shares[head.first];
    of_layer.resize(std::max(of_layer.size(), weights.size()));
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) of_layer[i].add(sum += weights[i]);
  }
  std::vector<CumulativeShare> result;
  for (const auto& [layer, of_layer] : shares)
    for (std::size_t i = 0; i < of_layer.size(); ++i)
      result.push_back({.layer = layer, .count = static_cast<std::int64_t>(i + 1), .share = of_layer[i].value()});
  return result;
}

}  // namespace headscope
