#include "plasticity/checks.h"

#include <cmath>
#include <unordered_map>

namespace headscope {
namespace {

// 4 p (1 - p) where 2 p n is a whole number.
double share_plasticity(int halves, Eigen::Index n) {
  const double p = static_cast<double>(halves) / (2 * static_cast<double>(n));
  return 4 * p * (1 - p);
}

// The standard deviation over replicates of first - second: both draw the same texts.
double replicate_error(const HeadUncertainty& first, const HeadUncertainty& second) {
  if (first.replicates.empty() || first.replicates.size() != second.replicates.size()) return missing;
  Eigen::ArrayXd difference(std::ssize(first.replicates));
  for (std::size_t r = 0; r < first.replicates.size(); ++r)
    difference[static_cast<Eigen::Index>(r)] = first.replicates[r] - second.replicates[r];
  return sample_deviation(difference);
}

}  // namespace

PairChecks::PairChecks(const CapturedVectors& captured, const Queries& queries, const Keys& keys)
    : captured_(captured), queries_(queries), keys_(keys) {}

std::int64_t PairChecks::text_of(const CellPairs& cell, std::size_t pair) const {
  return keys_.buckets[cell.cell.key_bucket_index].examples[cell.pairs[pair].example].example_id;
}

void PairChecks::add(const CellPairs& cell) {
  if (!bucket_ || bucket_number_ != cell.queries.bucket) {
    bucket_.emplace(captured_, queries_, cell.queries);
    bucket_number_ = cell.queries.bucket;
  }
  const BucketQueries::Counts halves_tp = bucket_->count_halves(cell.captured_pd);
  add_gap(cell, halves_tp);
  add_texts(cell, halves_tp);
}

void PairChecks::add_gap(const CellPairs& cell, const BucketQueries::Counts& halves_tp) {
  const Eigen::Index n = cell.queries.size(), pairs = halves_tp.cols();
  const double share = cell.cell.weight / static_cast<double>(cell.cell.n_pairs);
  const Eigen::RowVectorXi total_p = halves_tp.colwise().sum();
  Eigen::VectorXd gap_p(pairs), slope_p = Eigen::VectorXd::Zero(pairs);  // slope: share d 4p(1-p) / dp / n
  double sum = 0, gap = 0, slope_of_shares = 0;
  for (Eigen::Index p = 0; p < pairs; ++p) {
    gap_p[p] = cell.plasticity_p[p] - share_plasticity(total_p[p], n);
    if (std::isnan(gap_p[p])) continue;
    const double preferring = static_cast<double>(total_p[p]) / (2 * static_cast<double>(n));
    sum += share_plasticity(total_p[p], n);
    gap += gap_p[p];
    slope_p[p] = share * 4 * (1 - 2 * preferring) / static_cast<double>(n);
    slope_of_shares += slope_p[p] * preferring;
  }
  empirical_.sum += share * sum;
  empirical_.weight += cell.cell.weight;
  gap /= static_cast<double>(cell.cell.n_pairs);
  for (std::size_t p = 0; p < cell.pairs.size(); ++p) {
    const double value = gap_p[static_cast<Eigen::Index>(p)];
    if (!std::isnan(value)) gap_[text_of(cell, p)] += share * (value - gap);
  }
  const Eigen::VectorXd from_counts_t = halves_tp.cast<double>() * slope_p / 2;
  for (std::size_t t = 0; t < bucket_->texts().size(); ++t) {
    const BucketQueries::Text& text = bucket_->texts()[t];
    gap_[text.example_id] -=
        from_counts_t[static_cast<Eigen::Index>(t)] - static_cast<double>(text.size) * slope_of_shares;
  }
}

void PairChecks::add_texts(const CellPairs& cell, const BucketQueries::Counts& halves_tp) {
  const std::vector<BucketQueries::Text>& texts = bucket_->texts();
  if (texts.size() < 2) return;
  std::unordered_map<std::int64_t, Eigen::Index> place;
  for (std::size_t t = 0; t < texts.size(); ++t) place[texts[t].example_id] = static_cast<Eigen::Index>(t);
  const auto others = static_cast<double>(texts.size() - 1);
  double own_sum = 0, other_sum = 0;
  std::vector<std::pair<Eigen::Index, double>> differences;  // text of the keys, own - other
  // What the queries of each text move of the sum of the pairs' values for other texts.
  Eigen::VectorXd moved_t = Eigen::VectorXd::Zero(std::ssize(texts)), value_t(std::ssize(texts));
  for (std::size_t p = 0; p < cell.pairs.size(); ++p) {
    const auto column = static_cast<Eigen::Index>(p);
    const auto found = place.find(text_of(cell, p));
    if (found == place.end() || std::isnan(cell.plasticity_p[column])) continue;
    const Eigen::Index mine = found->second;
    for (Eigen::Index t = 0; t < value_t.size(); ++t)
      value_t[t] = share_plasticity(halves_tp(t, column), texts[static_cast<std::size_t>(t)].size);
    const double own = value_t[mine];
    const double other = (value_t.sum() - own) / others;
    own_sum += own;
    other_sum += other;
    differences.emplace_back(mine, own - other);
    own_text_queries_ += texts[static_cast<std::size_t>(mine)].size;
    value_t[mine] = other;
    moved_t.array() += (value_t.array() - other) / others;
  }
  if (differences.empty()) return;
  const auto count = static_cast<double>(differences.size());
  const double weight = cell.cell.weight, share = weight / count;
  own_text_pairs_ += std::ssize(differences);
  own_.sum += share * own_sum;
  other_.sum += share * other_sum;
  own_.weight += weight;
  other_.weight += weight;
  for (const auto& [text, difference] : differences) {
    moved_t[text] -= difference;
    text_weight_[texts[static_cast<std::size_t>(text)].example_id] += share;
  }
  for (std::size_t t = 0; t < texts.size(); ++t)
    text_gap_[texts[t].example_id] -= share * moved_t[static_cast<Eigen::Index>(t)];
}

void PairChecks::finish(double ap_overall, const TextSums& from_queries, HeadChecks& checks) {
  checks.ap_empirical = empirical_.value();
  checks.ap_gap = ap_overall - checks.ap_empirical;
  checks.ap_own_text = own_.value();
  checks.ap_other_text = other_.value();
  checks.own_text_pairs = own_text_pairs_;
  if (own_text_pairs_ > 0)
    checks.own_text_queries = static_cast<double>(own_text_queries_) / static_cast<double>(own_text_pairs_);
  if (empirical_.weight == 0) return;
  for (std::size_t text = 0; text < from_queries.examples().size(); ++text)
    gap_[from_queries.examples()[text]] += from_queries.values()[text] * empirical_.weight;
  checks.ap_gap_se = gap_.standard_error() / empirical_.weight;
  if (own_.weight == 0) return;
  const double text_gap = checks.ap_own_text - checks.ap_other_text;
  for (std::size_t text = 0; text < text_weight_.examples().size(); ++text)
    text_gap_[text_weight_.examples()[text]] -= text_gap * text_weight_.values()[text];
  checks.ap_text_gap_se = text_gap_.standard_error() / own_.weight;
}

void check_shuffled(const CapturedVectors& captured, const Keys& keys, const PlasticityOptions& options,
                    NumpyGenerator shuffle, NumpyGenerator pairs, const HeadUncertainty& uncertainty,
                    HeadChecks& checks) {
  StageTimes unused;  // all of it counts as checks
  const ShuffledLabels labels(captured, shuffle);
  Queries queries =
      prepare_queries(captured, labels.view(), keys.shuffled.orientation_d, options.max_tokens_per_head, options.seed);
  const QueryModel model = fit_for_cells(queries, options.variant);
  QueryInfluence influence(queries, model, options.variant);
  std::vector<Cell> cells = evaluate_cells(queries, model, keys.captured, keys.shuffled, options, pairs, unused,
                                           [&](const CellPairs& cell) { influence.add(cell); });
  checks.ap_shuffled = weighted_mean(cells);
  if (std::isnan(checks.ap_shuffled)) return;
  checks.ap_shuffled_gap_se =
      replicate_error(uncertainty, estimate_uncertainty(cells, keys.shuffled, options.seed,
                                                        options.bootstrap_replicates, influence.finish(captured)));
}

}  // namespace headscope
