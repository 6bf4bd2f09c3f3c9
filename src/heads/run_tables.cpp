#include "heads/run_tables.h"

#include <numeric>

#include "formats/parquet_table.h"
#include "heads/gain.h"

namespace headscope {
namespace {

constexpr std::size_t most_waiting = 1 << 16;  // rows of heads: some ten megabytes

double mean_of(const Numbers& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The rows as a table; none wait afterwards.
template <class Rows>
Table taken(Rows& rows) {
  Table table;
  Rows::columns(rows, [&](const char* name, auto& column) { table.add(name, std::exchange(column, {})); });
  return table;
}

}  // namespace

// The columns of each table, in the order of the file.
struct RunTables::Steps {
  Integers step, tokens;
  Numbers loss, lr, adamw_lr, grad_norm, tokens_per_s;

  static void columns(Steps& self, auto visit) {
    visit("step", self.step);
    visit("tokens", self.tokens);
    visit("loss", self.loss);
    visit("lr", self.lr);
    visit("adamw_lr", self.adamw_lr);
    visit("grad_norm", self.grad_norm);
    visit("tokens_per_s", self.tokens_per_s);
  }
};

struct RunTables::Probes {
  Integers step, tokens;
  Numbers loss, val_loss, k_pr;

  static void columns(Probes& self, auto visit) {
    visit("step", self.step);
    visit("tokens", self.tokens);
    visit("loss", self.loss);
    visit("val_loss", self.val_loss);
    visit("k_pr", self.k_pr);
  }
};

struct RunTables::Layers {
  Integers step, tokens;
  Texts source;
  Integers layer;
  Texts metric;
  Numbers value;

  static void columns(Layers& self, auto visit) {
    visit("step", self.step);
    visit("tokens", self.tokens);
    visit("source", self.source);
    visit("layer", self.layer);
    visit("metric", self.metric);
    visit("value", self.value);
  }
};

struct RunTables::Heads {
  Integers step, tokens;
  Texts source;
  Integers layer;
  Texts kind;
  Integers head;
  Texts metric;
  Numbers value;

  static void columns(Heads& self, auto visit) {
    visit("step", self.step);
    visit("tokens", self.tokens);
    visit("source", self.source);
    visit("layer", self.layer);
    visit("kind", self.kind);
    visit("head", self.head);
    visit("metric", self.metric);
    visit("value", self.value);
  }
};

struct RunTables::Gamma {
  Integers step, tokens, layer;
  Texts kind;
  Vectors vector;

  static void columns(Gamma& self, auto visit) {
    visit("step", self.step);
    visit("tokens", self.tokens);
    visit("layer", self.layer);
    visit("kind", self.kind);
    visit("vector", self.vector);
  }
};

struct RunTables::Waiting {
  Steps steps;
  Probes probes;
  Layers layers;
  Heads heads;
  Gamma gamma;
};

RunTables::RunTables(const std::filesystem::path& folder, const ExpectedMoments& keep)
    : folder_(folder), waiting_(std::make_shared<Waiting>()), collector_(keep) {
  for (const char* name : {"steps", "probes", "layers", "heads", "gamma"})
    tables_.emplace(name, PartTable(folder / fmt::format("{}.parquet", name)));
}

void RunTables::add_step(const StepRow& row) {
  Steps& steps = waiting_->steps;
  steps.step.push_back(row.moment.step);
  steps.tokens.push_back(row.moment.tokens);
  steps.loss.push_back(row.loss);
  steps.lr.push_back(row.lr);
  steps.adamw_lr.push_back(row.adamw_lr);
  steps.grad_norm.push_back(row.grad_norm);
  steps.tokens_per_s.push_back(row.tokens_per_s);
}

void RunTables::add_probe(const ProbeLosses& losses, const std::vector<HeadValues>& layers) {
  Numbers layer_pr;
  for (const HeadValues& values : layers)
    if (const auto pr = values.find("k_pr"); pr != values.end()) layer_pr.push_back(mean_of(pr->second));
  Probes& probes = waiting_->probes;
  probes.step.push_back(losses.moment.step);
  probes.tokens.push_back(losses.moment.tokens);
  probes.loss.push_back(losses.train);
  probes.val_loss.push_back(losses.validation);
  probes.k_pr.push_back(mean_of(layer_pr));
  losses_.push_back(losses);
}

void RunTables::add_heads(const Measured& when, const std::vector<HeadValues>& layers) {
  collector_.add(when, layers);
  Heads& heads = waiting_->heads;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (const Metric& metric : head_metrics()) {
      const auto values = layers[layer].find(metric.name);
      if (values == layers[layer].end()) continue;
      for (std::size_t head = 0; head < values->second.size(); ++head) {
        heads.step.push_back(when.moment.step);
        heads.tokens.push_back(when.moment.tokens);
        heads.source.emplace_back(when.source);
        heads.layer.push_back(static_cast<std::int64_t>(layer));
        heads.kind.emplace_back(head_kind_names[static_cast<std::size_t>(metric.kind)]);
        heads.head.push_back(static_cast<std::int64_t>(head));
        heads.metric.emplace_back(metric.name);
        heads.value.push_back(values->second[head]);
      }
      if (metric.averaged) add_layer(when, layer, metric.name, mean_of(values->second));
    }
  }
}

void RunTables::add_gains(const Measured& when, const Gains& gains, bool with_vectors) {
  if (with_vectors) collector_.add_gains(when.moment, gains);
  for (std::size_t layer = 0; layer < gains.k.size(); ++layer) {
    add_layer(when, layer, "gamma_cv", coefficient_of_variation(gains.k[layer]));
    add_layer(when, layer, "gamma_q_cv", coefficient_of_variation(gains.q[layer]));
    if (!with_vectors) continue;
    add_vector(when.moment, layer, "q", gains.q[layer]);
    add_vector(when.moment, layer, "k", gains.k[layer]);
  }
}

void RunTables::add_layer(const Measured& when, std::size_t layer, std::string_view metric, double value) {
  Layers& layers = waiting_->layers;
  layers.step.push_back(when.moment.step);
  layers.tokens.push_back(when.moment.tokens);
  layers.source.emplace_back(when.source);
  layers.layer.push_back(static_cast<std::int64_t>(layer));
  layers.metric.emplace_back(metric);
  layers.value.push_back(value);
}

void RunTables::add_vector(const Moment& moment, std::size_t layer, const char* kind, const Numbers& gain) {
  Gamma& gamma = waiting_->gamma;
  gamma.step.push_back(moment.step);
  gamma.tokens.push_back(moment.tokens);
  gamma.layer.push_back(static_cast<std::int64_t>(layer));
  gamma.kind.emplace_back(kind);
  gamma.vector.push_back(gain);
}

bool RunTables::many_wait() const {
  return waiting_->heads.value.size() >= most_waiting;
}

TableRows RunTables::flush() {
  tables_.at("steps").append(taken(waiting_->steps));
  tables_.at("probes").append(taken(waiting_->probes));
  tables_.at("layers").append(taken(waiting_->layers));
  tables_.at("heads").append(taken(waiting_->heads));
  tables_.at("gamma").append(taken(waiting_->gamma));
  TableRows counts;
  for (const auto& [name, table] : tables_) counts[name] = table.rows();
  return counts;
}

void RunTables::truncate(const TableRows& rows) {
  for (auto& [name, table] : tables_) {
    const auto known = rows.find(name);
    table.truncate_rows(known == rows.end() ? 0 : known->second);
    went_on_ |= table.rows() > 0;
  }
}

void RunTables::merge() {
  for (auto& [name, table] : tables_)
    if (table.rows() > 0)
      table.merge();
    else
      table.remove();
}

RunTracks RunTables::tracks() const {
  if (!went_on_) return collector_.tracks();
  return tables_.at("heads").rows() > 0 ? read_tracks(folder_, collector_.most()) : RunTracks();
}

std::vector<ProbeLosses> RunTables::losses() const {
  return went_on_ ? read_losses(folder_) : losses_;
}

std::vector<ProbeLosses> read_losses(const std::filesystem::path& folder) {
  const Table probes = read_parquet(folder / "probes.parquet");
  const Integers &step = probes.integers("step"), &tokens = probes.integers("tokens");
  const Numbers loss = probes.numbers("loss"), val_loss = probes.numbers("val_loss");
  std::vector<ProbeLosses> losses;
  for (std::size_t row = 0; row < probes.rows(); ++row)
    losses.push_back({{step[row], tokens[row]}, loss[row], val_loss[row]});
  return losses;
}

}  // namespace headscope
