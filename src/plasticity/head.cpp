#include "plasticity/head.h"

#include <nlohmann/json.hpp>

#include "stats/kolmogorov.h"

namespace headscope {
namespace {

// Positive part of R², normalised; equal weights where position predicts nothing (step 13).
std::vector<double> component_weights(const Eigen::VectorXd& r2_d) {
  const Eigen::VectorXd positive = r2_d.cwiseMax(0.0);
  const double total = positive.sum();
  const Eigen::VectorXd weights =
      total > 0 ? Eigen::VectorXd(positive / total)
                : Eigen::VectorXd(Eigen::VectorXd::Constant(r2_d.size(), 1.0 / static_cast<double>(r2_d.size())));
  return {weights.begin(), weights.end()};
}

// Visits the fields that are one value each, for both directions: writing and reading then agree on the order.
template <class Head, class Visit>
void visit_scalars(Head& head, Visit&& visit) {
  visit(head.id.layer), visit(head.id.q_head), visit(head.id.k_head);
  auto& u = head.uncertainty;
  for (auto* count : {&head.n_q_tokens, &head.n_k_tokens, &head.dim, &u.n_examples, &head.q_dropped, &head.k_dropped})
    visit(*count);
  for (const auto& [name, metric] : query_metrics) visit(head.metrics.*metric);
  visit(head.ap_overall);
  for (auto* estimate : {&u.overall, &u.first_20, &u.last_20, &u.drop})
    visit(estimate->value), visit(estimate->se_pairs), visit(estimate->se_examples);
  auto& checks = head.checks;
  for (auto* value :
       {&checks.ap_empirical, &checks.ap_gap, &checks.ap_own_text, &checks.ap_shuffled, &checks.ap_other_text,
        &checks.ks_d, &checks.lilliefors_p, &checks.ap_gap_se, &checks.ap_shuffled_gap_se, &checks.ap_text_gap_se})
    visit(*value);
  visit(checks.own_text_pairs), visit(checks.own_text_queries);
  visit(head.q_hash), visit(head.k_hash), visit(u.examples_hash);
}

template <class CellType, class Visit>
void visit_cell(CellType& cell, Visit&& visit) {
  visit(cell.q_bucket), visit(cell.k_bucket), visit(cell.n_pairs), visit(cell.n_examples);
  visit(cell.plasticity), visit(cell.se_pairs), visit(cell.se_examples), visit(cell.n_queries);
}

using nlohmann::json;

// JSON holds a double in its shortest decimal form that reads back exactly, and NaN as null.
template <class T>
void load(const json& value, T& target) {
  if constexpr (std::is_same_v<T, double>)
    target = value.is_null() ? missing : value.get<double>();
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    for (const json& item : value) load(item, target.emplace_back());
  else
    value.get_to(target);
}

}  // namespace

HeadResult analyse_head(const HeadId& id, const CapturedVectors& captured, const Keys& keys,
                        const PlasticityOptions& options, StageTimes& times) {
  HeadResult head;
  head.id = id;
  Queries queries = timed(times, Stage::regress, [&] {
    return prepare_queries(captured, labels_of(captured), keys.orientation_d, options.max_tokens_per_head,
                           options.seed);
  });
  const QueryModel model = fit_queries(queries, options, times);
  const NumpyGenerator pairs(options.seed + 10007 * static_cast<std::uint64_t>(id.layer) +
                             379 * static_cast<std::uint64_t>(id.q_head));
  std::optional<PairChecks> pair_checks;
  if (options.checks) pair_checks.emplace(captured, queries, keys);
  QueryInfluence influence(queries, model, options.variant);
  std::vector<Cell> cells =
      evaluate_cells(queries, model, keys.captured, keys, options, pairs, times, [&](const CellPairs& cell) {
        timed(times, Stage::plasticity, [&] { influence.add(cell); });
        if (pair_checks) timed(times, Stage::checks, [&] { pair_checks->add(cell); });
      });
  TextSums from_queries;
  timed(times, Stage::plasticity, [&] {
    from_queries = influence.finish(captured);
    head.uncertainty = estimate_uncertainty(cells, keys, options.seed, options.bootstrap_replicates, from_queries);
  });
  head.n_q_tokens = queries.x_nd.rows();
  head.n_k_tokens = keys.rows_used;
  head.dim = queries.x_nd.cols();
  head.metrics = model.metrics;
  head.ap_overall = weighted_mean(cells);
  head.cells.assign(cells.begin(), cells.end());
  head.component_r2.assign(model.component_r2_d.begin(), model.component_r2_d.end());
  head.component_weight = component_weights(model.component_r2_d);
  head.constant_components = model.constant_components;
  head.q_dropped = static_cast<std::int64_t>(captured.dropped_nonfinite);
  head.k_dropped = static_cast<std::int64_t>(keys.captured.dropped_nonfinite);
  head.q_hash = captured.content_hash;
  head.k_hash = keys.captured.content_hash;
  if (pair_checks)
    timed(times, Stage::checks, [&] {
      head.checks.ks_d = model.metrics.resid0_ks_d;
      head.checks.lilliefors_p = lilliefors_survival(head.checks.ks_d, head.n_q_tokens);
      pair_checks->finish(head.ap_overall, from_queries, head.checks);
      queries.x_nd.resize(0, 0);  // the shuffled queries need as much memory
      check_shuffled(captured, keys, options, shuffle_generator(options.seed, id.layer, id.q_head, Side::queries),
                     pairs, head.uncertainty, head.checks);
    });
  return head;
}

std::string to_record(const HeadResult& head) {
  json scalars = json::array(), cells = json::array();
  visit_scalars(head, [&](const auto& value) { scalars.push_back(value); });
  for (const CellResult& cell : head.cells) visit_cell(cell, [&](const auto& value) { cells.push_back(value); });
  return json{{"scalars", std::move(scalars)},
              {"cells", std::move(cells)},
              {"r2", head.component_r2},
              {"weight", head.component_weight},
              {"replicates", head.uncertainty.replicates},
              {"constant", head.constant_components}}
      .dump();
}

HeadResult from_record(const std::string& record) {
  try {
    const json content = json::parse(record);
    HeadResult head;
    std::size_t next = 0;
    visit_scalars(head, [&](auto& value) { load(content.at("scalars").at(next++), value); });
    const json& cells = content.at("cells");
    for (next = 0; next < cells.size();)
      visit_cell(head.cells.emplace_back(), [&](auto& value) { load(cells.at(next++), value); });
    load(content.at("r2"), head.component_r2);
    load(content.at("weight"), head.component_weight);
    load(content.at("replicates"), head.uncertainty.replicates);
    load(content.at("constant"), head.constant_components);
    return head;
  } catch (const json::exception& error) {
    fail_input("the record of a finished head cannot be read ({}); start again with --overwrite", error.what());
  }
}

}  // namespace headscope
