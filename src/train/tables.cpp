#include "train/tables.h"

#include <numeric>

#include "probe/gain.h"

namespace headscope {
namespace {

constexpr const char* source = "probe";

double mean_of(const Numbers& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

TrainTables::TrainTables(const std::filesystem::path& folder, const OptimizerOptions& optim) : optim_(optim) {
  for (const char* name : {"steps", "probes", "layers", "heads", "gamma"})
    tables_.emplace(name, PartTable(folder / fmt::format("{}.parquet", name)));
}

void TrainTables::add_step(const StepRecord& record, double tokens_per_s) {
  steps_.step.push_back(record.step);
  steps_.tokens.push_back(record.tokens);
  steps_.loss.push_back(record.loss);
  steps_.lr.push_back(optim_.muon_lr * record.lr_factor);
  steps_.adamw_lr.push_back(optim_.adamw_lr * record.lr_factor);
  steps_.grad_norm.push_back(record.grad_norm);
  steps_.tokens_per_s.push_back(tokens_per_s);
}

void TrainTables::add_probe(std::int64_t step, std::int64_t tokens, double loss, const ProbeResult& result) {
  Numbers layer_pr;
  for (std::size_t layer = 0; layer < result.key_pr.size(); ++layer) {
    const Numbers& head_pr = result.key_pr[layer];
    for (std::size_t head = 0; head < head_pr.size(); ++head) {
      heads_.step.push_back(step);
      heads_.tokens.push_back(tokens);
      heads_.source.emplace_back(source);
      heads_.layer.push_back(static_cast<std::int64_t>(layer));
      heads_.kind.emplace_back("k");
      heads_.head.push_back(static_cast<std::int64_t>(head));
      heads_.metric.emplace_back("k_pr");
      heads_.value.push_back(head_pr[head]);
    }
    layer_pr.push_back(mean_of(head_pr));
    add_layer(step, tokens, layer, "k_pr", layer_pr.back());
    if (result.k_gain.empty()) continue;
    add_layer(step, tokens, layer, "gamma_cv", coefficient_of_variation(result.k_gain[layer]));
    add_layer(step, tokens, layer, "gamma_q_cv", coefficient_of_variation(result.q_gain[layer]));
    add_gain(step, tokens, layer, "q", result.q_gain[layer]);
    add_gain(step, tokens, layer, "k", result.k_gain[layer]);
  }
  probes_.step.push_back(step);
  probes_.tokens.push_back(tokens);
  probes_.loss.push_back(loss);
  probes_.val_loss.push_back(result.val_loss.value_or(std::nan("")));
  probes_.k_pr.push_back(mean_of(layer_pr));
}

void TrainTables::add_layer(std::int64_t step, std::int64_t tokens, std::size_t layer, const char* metric,
                            double value) {
  layers_.step.push_back(step);
  layers_.tokens.push_back(tokens);
  layers_.source.emplace_back(source);
  layers_.layer.push_back(static_cast<std::int64_t>(layer));
  layers_.metric.emplace_back(metric);
  layers_.value.push_back(value);
}

void TrainTables::add_gain(std::int64_t step, std::int64_t tokens, std::size_t layer, const char* kind,
                           const Numbers& gain) {
  gains_.step.push_back(step);
  gains_.tokens.push_back(tokens);
  gains_.layer.push_back(static_cast<std::int64_t>(layer));
  gains_.kind.emplace_back(kind);
  gains_.vector.push_back(gain);
}

std::map<std::string, Table> TrainTables::take_waiting() {
  Steps s = std::exchange(steps_, {});
  Probes p = std::exchange(probes_, {});
  Layers l = std::exchange(layers_, {});
  Heads h = std::exchange(heads_, {});
  Gains g = std::exchange(gains_, {});
  std::map<std::string, Table> waiting;
  waiting["steps"]
      .add("step", std::move(s.step))
      .add("tokens", std::move(s.tokens))
      .add("loss", std::move(s.loss))
      .add("lr", std::move(s.lr))
      .add("adamw_lr", std::move(s.adamw_lr))
      .add("grad_norm", std::move(s.grad_norm))
      .add("tokens_per_s", std::move(s.tokens_per_s));
  waiting["probes"]
      .add("step", std::move(p.step))
      .add("tokens", std::move(p.tokens))
      .add("loss", std::move(p.loss))
      .add("val_loss", std::move(p.val_loss))
      .add("k_pr", std::move(p.k_pr));
  waiting["layers"]
      .add("step", std::move(l.step))
      .add("tokens", std::move(l.tokens))
      .add("source", std::move(l.source))
      .add("layer", std::move(l.layer))
      .add("metric", std::move(l.metric))
      .add("value", std::move(l.value));
  waiting["heads"]
      .add("step", std::move(h.step))
      .add("tokens", std::move(h.tokens))
      .add("source", std::move(h.source))
      .add("layer", std::move(h.layer))
      .add("kind", std::move(h.kind))
      .add("head", std::move(h.head))
      .add("metric", std::move(h.metric))
      .add("value", std::move(h.value));
  waiting["gamma"]
      .add("step", std::move(g.step))
      .add("tokens", std::move(g.tokens))
      .add("layer", std::move(g.layer))
      .add("kind", std::move(g.kind))
      .add("vector", std::move(g.vector));
  return waiting;
}

TableRows TrainTables::flush() {
  for (const auto& [name, rows] : take_waiting()) tables_.at(name).append(rows);
  TableRows counts;
  for (const auto& [name, table] : tables_) counts[name] = table.rows();
  return counts;
}

void TrainTables::truncate(const TableRows& rows) {
  for (auto& [name, table] : tables_) {
    const auto known = rows.find(name);
    table.truncate_rows(known == rows.end() ? 0 : known->second);
  }
}

void TrainTables::merge() {
  for (auto& [name, table] : tables_) table.merge();
}

}  // namespace headscope
