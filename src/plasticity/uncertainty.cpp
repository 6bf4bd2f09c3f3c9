#include "plasticity/uncertainty.h"

#include <map>
#include <set>
#include <unordered_map>

#include "core/random.h"

namespace headscope {
namespace {

using ExampleWeights = std::unordered_map<std::int64_t, Eigen::VectorXd>;  // by example id, one for each replicate

// The weights of an example, drawn when it is first asked for.
const Eigen::VectorXd& weight_of(std::int64_t example_id, std::uint64_t seed, Eigen::Index replicates,
                                 ExampleWeights& weights) {
  const auto [entry, is_new] = weights.try_emplace(example_id, replicates);
  for (Eigen::Index r = 0; is_new && r < replicates; ++r)
    entry->second[r] = bootstrap_weight(seed, example_id, static_cast<std::uint64_t>(r));
  return entry->second;
}

// A cell's value in each replicate; NaN where none of its examples was drawn. Adds the weights that it needs.
Eigen::VectorXd replicate_cell(const Cell& cell, const KeyGroups& keys, std::uint64_t seed, Eigen::Index replicates,
                               ExampleWeights& weights) {
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(replicates), count = sum;
  for (const ExampleSum& example : cell.examples) {
    const std::int64_t id = keys.buckets[cell.key_bucket_index].examples[example.example].example_id;
    const Eigen::VectorXd& weight = weight_of(id, seed, replicates, weights);
    sum += weight * example.sum;
    count += weight * static_cast<double>(example.count);
  }
  return sum.cwiseQuotient(count);
}

// What the queries of the texts drawn add to the head's value in each replicate.
Eigen::VectorXd moved_by_queries(const TextSums& influence, std::uint64_t seed, Eigen::Index replicates,
                                 ExampleWeights& weights) {
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(replicates);
  for (std::size_t text = 0; text < influence.examples().size(); ++text) {
    const Eigen::VectorXd& weight = weight_of(influence.examples()[text], seed, replicates, weights);
    sum.array() += (weight.array() - 1) * influence.values()[text];
  }
  return sum;
}

// Of the set of examples, whatever their order.
std::string hash_of(const ExampleWeights& weights) {
  std::uint64_t sum = 0;
  for (const auto& [example_id, weight] : weights) sum += splitmix(static_cast<std::uint64_t>(example_id));
  return fmt::format("x{:016x}", sum);
}

// A weighted mean over some of the cells, with its replicates.
struct CellMean {
  double value = 0, weight = 0, pair_variance = 0;
  Eigen::ArrayXd replicate_sum, replicate_weight;

  explicit CellMean(Eigen::Index replicates)
      : replicate_sum(Eigen::ArrayXd::Zero(replicates)), replicate_weight(Eigen::ArrayXd::Zero(replicates)) {}

  void add(const Cell& cell, const Eigen::VectorXd& replicates) {
    weight += cell.weight;
    value += cell.weight * cell.plasticity;
    pair_variance += cell.weight * cell.weight * cell.se_pairs * cell.se_pairs;
    const auto drawn = !replicates.array().isNaN();
    replicate_sum += drawn.select(cell.weight * replicates.array(), 0.0);
    replicate_weight += drawn.select(Eigen::ArrayXd::Constant(replicates.size(), cell.weight), 0.0);
  }
  [[nodiscard]] Eigen::VectorXd replicates() const { return replicate_sum / replicate_weight; }
  [[nodiscard]] double se_pairs() const { return std::sqrt(pair_variance) / weight; }
};

// Distances (query bucket - key bucket), taken from the nearest or from the farthest until they hold a fifth of the
// cells.
std::set<std::int64_t> fifth_of_distances(const std::vector<Cell>& cells, bool nearest) {
  std::map<std::int64_t, std::size_t> count;
  std::size_t total = 0;
  for (const Cell& cell : cells) {
    if (cell.empty()) continue;
    ++count[nearest ? cell.q_bucket - cell.k_bucket : cell.k_bucket - cell.q_bucket];
    ++total;
  }
  std::set<std::int64_t> chosen;
  std::size_t held = 0;
  for (const auto& [distance, cells_there] : count) {
    if (5 * held >= total) break;
    chosen.insert(std::abs(distance));
    held += cells_there;
  }
  return chosen;
}

Estimate estimate(const CellMean& mean, bool several_examples) {
  if (mean.weight == 0) return {};
  return {mean.value / mean.weight, mean.se_pairs(), several_examples ? sample_deviation(mean.replicates()) : missing};
}

}  // namespace

double bootstrap_weight(std::uint64_t seed, std::int64_t example_id, std::uint64_t replicate) {
  const std::uint64_t word =
      mixed_bits(mixed_bits(splitmix(seed) ^ static_cast<std::uint64_t>(example_id)) + splitmix_step * (replicate + 1));
  const double uniform = static_cast<double>(word >> 11) * 0x1p-53;
  // Inverse of the Poisson(1) distribution function: P(W = w) = exp(-1) / w!.
  double weight = 0, term = std::exp(-1.0), cumulative = term;
  while (uniform >= cumulative && weight < 20) {
    ++weight;
    cumulative += term /= weight;
  }
  return weight;
}

HeadUncertainty estimate_uncertainty(std::vector<Cell>& cells, const KeyGroups& keys, std::uint64_t seed,
                                     std::int64_t replicates, const TextSums& from_queries) {
  HeadUncertainty result;
  ExampleWeights weights;
  const std::set<std::int64_t> near = fifth_of_distances(cells, true), far = fifth_of_distances(cells, false);
  CellMean overall(replicates), first(replicates), last(replicates);
  for (Cell& cell : cells) {
    const Eigen::VectorXd values = replicate_cell(cell, keys, seed, replicates, weights);
    if (cell.examples.size() >= 2) cell.se_examples = sample_deviation(values);
    if (cell.empty()) continue;
    const std::int64_t distance = cell.q_bucket - cell.k_bucket;
    overall.add(cell, values);
    if (near.contains(distance)) first.add(cell, values);
    if (far.contains(distance)) last.add(cell, values);
  }
  const bool several = weights.size() > 1;  // of the keys
  const Eigen::VectorXd moved = moved_by_queries(from_queries, seed, replicates, weights);
  result.n_examples = static_cast<std::int64_t>(weights.size());
  result.examples_hash = hash_of(weights);
  result.overall = estimate(overall, several);
  result.first_20 = estimate(first, several);
  result.last_20 = estimate(last, several);
  if (near == far) {  // one distance only: the same cells, no drop by construction
    result.drop = {0, 0, 0};
  } else {
    result.drop = {result.first_20.value - result.last_20.value,
                   std::hypot(result.first_20.se_pairs, result.last_20.se_pairs),
                   several ? sample_deviation(first.replicates() - last.replicates()) : missing};
  }
  if (overall.weight == 0) result.drop = {};
  if (several) {
    const Eigen::VectorXd replicates_of_overall = overall.replicates() + moved;
    if (overall.weight > 0) result.overall.se_examples = sample_deviation(replicates_of_overall);
    result.replicates.assign(replicates_of_overall.begin(), replicates_of_overall.end());
  }
  return result;
}

double sample_deviation(const Eigen::ArrayXd& values) {
  double sum = 0, count = 0, squares = 0;
  for (const double value : values)
    if (!std::isnan(value)) sum += value, ++count;
  if (count < 2) return missing;
  for (const double value : values)
    if (!std::isnan(value)) squares += (value - sum / count) * (value - sum / count);
  return std::sqrt(squares / (count - 1));
}

}  // namespace headscope
