#include "plasticity/head.h"

#include "core/missing.h"

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

std::vector<CellResult> cell_results(const std::vector<Cell>& cells, const HeadUncertainty& uncertainty) {
  std::vector<CellResult> results;
  for (std::size_t c = 0; c < cells.size(); ++c)
    results.push_back({cells[c].q_bucket, cells[c].k_bucket, cells[c].n_pairs,
                       static_cast<std::int64_t>(cells[c].examples.size()), cells[c].plasticity, cells[c].se_pairs,
                       uncertainty.cell_se_examples[c]});
  return results;
}

// One traversal for writing and reading a record, so that the two cannot differ. Doubles travel as their bits' shortest
// decimal form; NaN as null.
template <class Result, class Visit>
void visit_scalars(Result& r, Visit&& visit) {
  visit(r.id.layer), visit(r.id.q_head), visit(r.id.k_head);
  visit(r.n_q_tokens), visit(r.n_k_tokens), visit(r.dim), visit(r.n_examples), visit(r.q_dropped), visit(r.k_dropped);
  auto& m = r.metrics;
  for (auto* value : {&m.r2_pos, &m.beta_norm, &m.r2_scalar, &m.mae_baseline, &m.mae_proj, &m.mae_ratio, &m.resid0_skew,
                      &m.resid0_kurt, &m.resid0_ks_p, &m.noise_med_abs_skew, &m.noise_med_abs_kurt, &m.noise_med_ks_p,
                      &m.noise_frac_ks_p_lt_alpha, &r.ap_overall})
    visit(*value);
  for (auto* e : {&r.overall, &r.first_20, &r.last_20, &r.drop})
    visit(e->value), visit(e->se_pairs), visit(e->se_examples);
  visit(r.q_hash), visit(r.k_hash), visit(r.examples_hash);
}

template <class CellType, class Visit>
void visit_cell(CellType& cell, Visit&& visit) {
  visit(cell.q_bucket), visit(cell.k_bucket), visit(cell.n_pairs), visit(cell.n_examples);
  visit(cell.plasticity), visit(cell.se_pairs), visit(cell.se_examples);
}

using nlohmann::json;

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
  HeadResult result;
  result.id = id;
  Queries queries;
  {
    const StageTimer timer(times, Stage::regress);
    queries = prepare_queries(captured, keys.orientation_d, options.max_tokens_per_head, options.seed);
  }
  const QueryModel model = fit_queries(queries, options, times);
  const std::uint64_t pair_seed =
      options.seed + 10007 * static_cast<std::uint64_t>(id.layer) + 379 * static_cast<std::uint64_t>(id.q_head);
  const std::vector<Cell> cells = evaluate_cells(queries, model, keys, options, NumpyGenerator(pair_seed), times);

  const StageTimer timer(times, Stage::plasticity);
  HeadUncertainty uncertainty = estimate_uncertainty(cells, keys, options.seed, options.bootstrap_replicates);
  result.n_q_tokens = queries.x_nd.rows();
  result.n_k_tokens = keys.rows_used;
  result.dim = queries.x_nd.cols();
  result.metrics = model.metrics;
  result.ap_overall = weighted_mean(cells);
  result.cells = cell_results(cells, uncertainty);
  result.component_r2.assign(model.component_r2_d.begin(), model.component_r2_d.end());
  result.component_weight = component_weights(model.component_r2_d);
  result.overall = uncertainty.overall;
  result.first_20 = uncertainty.first_20;
  result.last_20 = uncertainty.last_20;
  result.drop = uncertainty.drop;
  result.n_examples = uncertainty.n_examples;
  result.examples_hash = fmt::format("x{:016x}", uncertainty.examples_hash);
  result.replicates.assign(uncertainty.overall_replicates.begin(), uncertainty.overall_replicates.end());
  result.constant_components.assign(model.constant_components.begin(), model.constant_components.end());
  result.q_dropped = static_cast<std::int64_t>(captured.dropped_nonfinite);
  result.k_dropped = static_cast<std::int64_t>(keys.captured.dropped_nonfinite);
  result.q_hash = captured.content_hash;
  result.k_hash = keys.captured.content_hash;
  return result;
}

std::string to_record(const HeadResult& result) {
  json scalars = json::array(), cells = json::array();
  visit_scalars(result, [&](const auto& value) { scalars.push_back(value); });
  for (const CellResult& cell : result.cells) visit_cell(cell, [&](const auto& value) { cells.push_back(value); });
  return json{{"scalars", std::move(scalars)},   {"cells", std::move(cells)},
              {"r2", result.component_r2},       {"weight", result.component_weight},
              {"replicates", result.replicates}, {"constant", result.constant_components}}
      .dump();
}

HeadResult from_record(const std::string& record) {
  try {
    const json content = json::parse(record);
    HeadResult result;
    std::size_t next = 0;
    visit_scalars(result, [&](auto& value) { load(content.at("scalars").at(next++), value); });
    const json& cells = content.at("cells");
    for (next = 0; next < cells.size();)
      visit_cell(result.cells.emplace_back(), [&](auto& value) { load(cells.at(next++), value); });
    load(content.at("r2"), result.component_r2);
    load(content.at("weight"), result.component_weight);
    load(content.at("replicates"), result.replicates);
    load(content.at("constant"), result.constant_components);
    return result;
  } catch (const json::exception& error) {
    fail_input("the record of a finished head cannot be read ({}); start again with --overwrite", error.what());
  }
}

}  // namespace headscope
