#include "train/tables.h"

#include <numeric>

#include "probe/gain.h"

namespace headscope {
namespace {

constexpr std::size_t most_waiting = 1 << 16;  // rows of heads: some ten megabytes

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

void TrainTables::add_probe(const Moment& moment, double loss, double val_loss, const std::vector<HeadValues>& layers) {
  Numbers layer_pr;
  for (const HeadValues& values : layers)
    if (const auto pr = values.find("k_pr"); pr != values.end()) layer_pr.push_back(mean_of(pr->second));
  probes_.step.push_back(moment.step);
  probes_.tokens.push_back(moment.tokens);
  probes_.loss.push_back(loss);
  probes_.val_loss.push_back(val_loss);
  probes_.k_pr.push_back(mean_of(layer_pr));
}

void TrainTables::add_heads(const Measured& when, const std::vector<HeadValues>& layers) {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (const Metric& metric : head_metrics()) {
      const auto values = layers[layer].find(metric.name);
      if (values == layers[layer].end()) continue;
      for (std::size_t head = 0; head < values->second.size(); ++head) {
        heads_.step.push_back(when.moment.step);
        heads_.tokens.push_back(when.moment.tokens);
        heads_.source.emplace_back(when.source);
        heads_.layer.push_back(static_cast<std::int64_t>(layer));
        heads_.kind.emplace_back(head_kind_names[static_cast<std::size_t>(metric.kind)]);
        heads_.head.push_back(static_cast<std::int64_t>(head));
        heads_.metric.emplace_back(metric.name);
        heads_.value.push_back(values->second[head]);
      }
      if (metric.averaged) add_layer(when, layer, metric.name, mean_of(values->second));
    }
  }
}

void TrainTables::add_gains(const Measured& when, const Gains& gains, bool with_vectors) {
  for (std::size_t layer = 0; layer < gains.k.size(); ++layer) {
    add_layer(when, layer, "gamma_cv", coefficient_of_variation(gains.k[layer]));
    add_layer(when, layer, "gamma_q_cv", coefficient_of_variation(gains.q[layer]));
    if (!with_vectors) continue;
    add_vector(when.moment, layer, "q", gains.q[layer]);
    add_vector(when.moment, layer, "k", gains.k[layer]);
  }
}

void TrainTables::add_layer(const Measured& when, std::size_t layer, std::string_view metric, double value) {
  layers_.step.push_back(when.moment.step);
  layers_.tokens.push_back(when.moment.tokens);
  layers_.source.emplace_back(when.source);
  layers_.layer.push_back(static_cast<std::int64_t>(layer));
  layers_.metric.emplace_back(metric);
  layers_.value.push_back(value);
}

void TrainTables::add_vector(const Moment& moment, std::size_t layer, const char* kind, const Numbers& gain) {
  gamma_.step.push_back(moment.step);
  gamma_.tokens.push_back(moment.tokens);
  gamma_.layer.push_back(static_cast<std::int64_t>(layer));
  gamma_.kind.emplace_back(kind);
  gamma_.vector.push_back(gain);
}

std::map<std::string, Table> TrainTables::take_waiting() {
  Steps s = std::exchange(steps_, {});
  Probes p = std::exchange(probes_, {});
  Layers l = std::exchange(layers_, {});
  Heads h = std::exchange(heads_, {});
  Gamma g = std::exchange(gamma_, {});
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

bool TrainTables::many_wait() const {
  return heads_.value.size() >= most_waiting;
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
  for (auto& [name, table] : tables_)
    if (table.rows() > 0)
      table.merge();
    else
      table.remove();
}

}  // namespace headscope
