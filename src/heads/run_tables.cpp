#include "heads/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/lists.h"
#include "formats/parquet_table.h"
#include "stats/sample_moments.h"

namespace headscope {
namespace {

constexpr std::size_t most_waiting = 1 << 16;  // rows of heads: some ten megabytes

double mean_of(const Numbers& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Tracks of one source from what was kept of it.
template <class Kept>
Tracks tracks_of(std::string source, const HeadCounts& counts, const std::vector<Kept>& kept) {
  Tracks tracks(std::move(source));
  tracks.counts = counts;
  for (const Kept& one : kept) tracks.moments.push_back(one.moment);
  for (std::size_t moment = 0; moment < kept.size(); ++moment)
    for (std::size_t layer = 0; layer < kept[moment].layers.size(); ++layer)
      for (const auto& [metric, values] : kept[moment].layers[layer])
        for (std::size_t head = 0; head < values.size(); ++head)
          tracks.set(metric, moment, static_cast<std::int64_t>(layer), static_cast<std::int64_t>(head), values[head]);
  return tracks;
}

template <class Kept>
void count(const std::vector<Kept>& kept, HeadCounts& counts) {
  for (const Kept& one : kept) {
    counts.layers = std::max(counts.layers, static_cast<std::int64_t>(one.layers.size()));
    for (const HeadValues& layer : one.layers)
      for (const auto& [metric, values] : layer) {
        std::int64_t& heads =
            metric_named(metric, "heads").kind == HeadKind::key ? counts.key_heads : counts.query_heads;
        heads = std::max(heads, static_cast<std::int64_t>(values.size()));
      }
  }
}

}  // namespace

RunTables::RunTables(const std::filesystem::path& folder, const ExpectedMoments& keep,
                     const std::function<void()>& before_rename)
    : folder_(folder), collector_(keep) {
  for (const char* name : {"steps", "probes", "layers", "heads", "gamma"})
    tables_.emplace(name, PartTable(folder / fmt::format("{}.parquet", name), before_rename));
}

void RunTables::add_step(const StepRow& row) {
  steps_.add(row.moment.step, row.moment.tokens, row.loss, row.lr, row.adamw_lr, row.grad_norm, row.tokens_per_s);
}

void RunTables::add_probe(const ProbeLosses& losses, const std::vector<HeadValues>& layers) {
  Numbers layer_pr;
  for (const HeadValues& values : layers)
    if (const auto pr = values.find("k_pr"); pr != values.end()) layer_pr.push_back(mean_of(pr->second));
  probes_.add(losses.moment.step, losses.moment.tokens, losses.train, losses.validation, mean_of(layer_pr));
  losses_.push_back(losses);
}

void RunTables::add_heads(const Measured& when, const std::vector<HeadValues>& layers) {
  collector_.add(when, layers);
  const auto& [step, tokens] = when.moment;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (const Metric& metric : head_metrics()) {
      const auto values = layers[layer].find(metric.name);
      if (values == layers[layer].end()) continue;
      const std::string kind(head_kind_names[static_cast<std::size_t>(metric.kind)]);
      for (std::size_t head = 0; head < values->second.size(); ++head)
        heads_.add(step, tokens, std::string(when.source), static_cast<Whole>(layer), kind, static_cast<Whole>(head),
                   std::string(metric.name), values->second[head]);
      if (metric.averaged) add_layer(when, layer, metric.name, mean_of(values->second));
    }
  }
}

void RunTables::add_gains(const Measured& when, const Gains& gains, bool with_vectors) {
  if (with_vectors) collector_.add_gains(when.moment, gains);
  const auto& [step, tokens] = when.moment;
  for (std::size_t layer = 0; layer < gains.k.size(); ++layer) {
    add_layer(when, layer, "gamma_cv", coefficient_of_variation(gains.k[layer]));
    add_layer(when, layer, "gamma_q_cv", coefficient_of_variation(gains.q[layer]));
    if (!with_vectors) continue;
    gamma_.add(step, tokens, static_cast<Whole>(layer), "q", gains.q[layer]);
    gamma_.add(step, tokens, static_cast<Whole>(layer), "k", gains.k[layer]);
  }
}

void RunTables::add_layer(const Measured& when, std::size_t layer, std::string_view metric, double value) {
  layers_.add(when.moment.step, when.moment.tokens, std::string(when.source), static_cast<Whole>(layer),
              std::string(metric), value);
}

bool RunTables::flush_is_due() const {
  return heads_.size() >= most_waiting || seconds_since(flushed_) > std::max(10.0, 0.01 * seconds_since(started_));
}

TableRows RunTables::flush() {
  flushed_ = Clock::now();
  tables_.at("gamma").append(gamma_.take());
  tables_.at("heads").append(heads_.take());
  tables_.at("layers").append(layers_.take());
  tables_.at("probes").append(probes_.take());
  tables_.at("steps").append(steps_.take());  // last: a reader who sees these rows sees the others of their moment
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
  const Table probes = read_parquet(folder / probes_table);
  const Integers &step = probes.integers("step"), &tokens = probes.integers("tokens");
  const Numbers loss = probes.numbers("loss"), val_loss = probes.numbers("val_loss");
  std::vector<ProbeLosses> losses;
  for (std::size_t row = 0; row < probes.rows(); ++row) {
    const Moment moment{step[row], tokens[row]};
    check_next_moment(folder / probes_table, row, moment,
                      losses.empty() ? std::nullopt : std::optional(losses.back().moment));
    losses.push_back({moment, loss[row], val_loss[row]});
  }
  return losses;
}

void check_next_moment(const std::filesystem::path& table, std::size_t row, const Moment& moment,
                       const std::optional<Moment>& before) {
  const auto inside = [](std::int64_t number) { return number >= 0 && number <= most_steps_or_tokens; };
  if (!inside(moment.step) || !inside(moment.tokens))
    fail_input("{}: row {}: step {}, tokens {}: expected 0 to 2^53; the table is damaged", table.string(), row,
               moment.step, moment.tokens);
  if (before && (moment.step <= before->step || moment.tokens < before->tokens))
    fail_input("{}: row {}: step {} ({} tokens) behind step {} ({} tokens); the table is damaged", table.string(), row,
               moment.step, moment.tokens, before->step, before->tokens);
}

TrackCollector::TrackCollector(const ExpectedMoments& expected)
    : most_(expected.most),
      train_{evenly_spaced(expected.train, expected.most)},
      probe_{evenly_spaced(expected.probe, expected.most)} {}

void TrackCollector::add(const Measured& when, const std::vector<HeadValues>& layers) {
  if (std::ranges::all_of(layers, &HeadValues::empty)) return;  // no rows of heads: no moment
  Source& source = when.source == "probe" ? probe_ : train_;
  if (!std::ranges::binary_search(source.places, source.seen++)) return;
  source.kept.push_back({when.moment, layers});
  gains_.try_emplace(when.moment.step);
  keep_gains(when.moment);
}

void TrackCollector::add_gains(const Moment& moment, const Gains& gains) {
  last_gains_at_ = moment;
  last_gains_ = gains;
  keep_gains(moment);
}

// The last gains, where the moment is theirs and is kept.
void TrackCollector::keep_gains(const Moment& moment) {
  const auto place = gains_.find(moment.step);
  if (place != gains_.end() && last_gains_at_ == moment) place->second = {moment, last_gains_};
}

RunTracks TrackCollector::tracks() const {
  HeadCounts counts;
  count(train_.kept, counts);
  count(probe_.kept, counts);
  RunTracks run;
  run.train = tracks_of("train", counts, train_.kept);
  run.probe = tracks_of("probe", counts, probe_.kept);
  for (const auto& [step, kept] : gains_) {
    const auto& [moment, gains] = kept;
    for (std::size_t layer = 0; layer < gains.k.size(); ++layer)
      run.gains.push_back({moment, static_cast<std::int64_t>(layer), gains.q[layer], gains.k[layer]});
  }
  return run;
}

}  // namespace headscope
