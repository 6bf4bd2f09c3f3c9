#include "heads/tracks.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/lists.h"
#include "core/missing.h"
#include "formats/parquet_table.h"
#include "formats/part_table.h"
#include "run/manifest.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
// What no run reaches. Whole numbers up to 2^53 are exact in double.
constexpr std::int64_t most_head_rows = 1 << 16;

// Arrays have room for every layer, head and moment, and a whole table has a row for each. A damaged number must not
// ask for all memory: an array may have this many values for each row of its metric, or this many in a small table.
constexpr std::int64_t values_of_a_row = 8;
constexpr std::int64_t values_of_a_small_table = 1 << 16;

// Where a moment is in the arrays, by step.
using Places = std::map<std::int64_t, std::size_t>;

// At most `most` of them, at equal distances.
std::vector<Moment> thinned(const std::map<std::int64_t, std::int64_t>& tokens_of_step, std::size_t most) {
  std::vector<Moment> all, chosen;
  for (const auto& [step, tokens] : tokens_of_step) all.push_back({step, tokens});
  for (const std::size_t place : evenly_spaced(all.size(), most)) chosen.push_back(all[place]);
  return chosen;
}

template <class... Args>
[[noreturn]] void refuse(const fs::path& table, std::int64_t row, fmt::format_string<Args...> format, Args&&... args) {
  fail_input("{}: row {}: {}; the table is damaged", table.string(), row,
             fmt::format(format, std::forward<Args>(args)...));
}

void check_moment(const fs::path& table, std::int64_t row, const Moment& moment) {
  const auto inside = [](std::int64_t number) { return number >= 0 && number <= most_steps_or_tokens; };
  if (!inside(moment.step) || !inside(moment.tokens))
    refuse(table, row, "step {}, tokens {}: expected 0 to 2^53", moment.step, moment.tokens);
}

// One row of heads.parquet.
struct HeadRow {
  std::int64_t row = 0;  // of the table, all parts together
  Moment moment;
  bool of_probe = false;
  const Metric* metric = nullptr;
  std::int64_t layer = 0, head = 0;
  double value = 0;  // NaN where nothing could be measured
};

const Metric* known_metric(std::string_view name) {
  const auto found = std::ranges::find(head_metrics(), name, &Metric::name);
  return found == head_metrics().end() ? nullptr : &*found;
}

// Calls `visit` with each row. Rows of a source or a metric that this version does not know are left out; rows that
// make no sense are refused.
template <class Visit>
void for_each_row(const fs::path& heads, Visit visit) {
  HeadRow now;
  std::int64_t next_row = 0;
  std::string last_name;  // most rows are of the metric of the row before
  scan_parquet(heads, {"step", "tokens", "source", "layer", "kind", "head", "metric", "value"}, [&](const Table& rows) {
    const auto &step = rows.integers("step"), &tokens = rows.integers("tokens"), &layer = rows.integers("layer"),
               &head = rows.integers("head");
    const auto &source = rows.texts("source"), &kind = rows.texts("kind"), &metric = rows.texts("metric");
    const Numbers value = rows.numbers("value");
    for (std::size_t i = 0; i < rows.rows(); ++i) {
      now = {next_row++, {step[i], tokens[i]}, source[i] == "probe", now.metric, layer[i], head[i], value[i]};
      if (!now.of_probe && source[i] != "train") continue;
      if (metric[i] != last_name) now.metric = known_metric(last_name = metric[i]);
      if (now.metric == nullptr) continue;
      check_moment(heads, now.row, now.moment);
      const std::string_view expected = head_kind_names[static_cast<std::size_t>(now.metric->kind)];
      if (kind[i] != expected)
        refuse(heads, now.row, "{} of a head of kind '{:.16}', expected '{}'", now.metric->name, kind[i], expected);
      if (now.layer < 0 || now.layer >= most_head_rows || now.head < 0 || now.head >= most_head_rows)
        refuse(heads, now.row, "layer {}, head {}: out of range", now.layer, now.head);
      visit(now);
    }
  });
}

// The largest number of a layer or a head, and the rows that have it: of a damaged one there are few.
struct Largest {
  std::int64_t number = -1, rows = 0;
  HeadRow first;

  void see(std::int64_t seen, const HeadRow& row) {
    if (seen > number) *this = {seen, 0, row};
    if (seen == number) ++rows;
  }
};

// First pass: the moments, the numbers of heads, and how many rows there are of each metric.
class Shape {
 public:
  explicit Shape(const fs::path& heads) : heads_(heads) {
    for_each_row(heads, [&](const HeadRow& row) {
      const auto source = static_cast<std::size_t>(row.of_probe);
      const auto [known, added] = tokens_[source].emplace(row.moment.step, row.moment.tokens);
      if (known->second != row.moment.tokens)
        refuse(heads, row.row, "step {} has {} tokens, in a row before {}", row.moment.step, row.moment.tokens,
               known->second);
      layer_.see(row.layer, row);
      head_[static_cast<std::size_t>(row.metric->kind)].see(row.head, row);
      ++rows_[source][row.metric];
    });
  }

  // SampleMoments and counts of one source; its arrays will fit into memory.
  void give(Tracks& tracks, std::size_t most) const {
    const auto source = static_cast<std::size_t>(tracks.source == "probe");
    tracks.moments = thinned(tokens_[source], most);
    tracks.measured = tokens_[source].size();
    tracks.counts = {layer_.number + 1, head_[0].number + 1, head_[1].number + 1};
    for (const auto& [metric, rows] : rows_[source]) {
      const std::int64_t of_a_moment = tracks.counts.layers * tracks.heads_of(metric->name);  // at most 2^32
      const std::int64_t room = std::max(values_of_a_small_table, values_of_a_row * rows);
      if (of_a_moment <= room / static_cast<std::int64_t>(tracks.moments.size())) continue;
      const Largest& head = head_[static_cast<std::size_t>(metric->kind)];
      const HeadRow& damaged = layer_.rows < head.rows ? layer_.first : head.first;
      refuse(heads_, damaged.row, "layer {}, head {}: out of range, {} rows cannot be all of {}", damaged.layer,
             damaged.head, rows, metric->name);
    }
  }

 private:
  fs::path heads_;
  std::map<std::int64_t, std::int64_t> tokens_[2];  // by step; of training, of probes
  Largest layer_, head_[2];                         // keys, queries
  std::map<const Metric*, std::int64_t> rows_[2];
};

Places places_of(const std::vector<Moment>& moments) {
  Places places;
  for (std::size_t i = 0; i < moments.size(); ++i) places[moments[i].step] = i;
  return places;
}

// Second pass: the values.
void read_values(const fs::path& heads, RunTracks& tracks) {
  const Places places[] = {places_of(tracks.train.moments), places_of(tracks.probe.moments)};
  std::map<const Metric*, std::vector<bool>> filled[2];
  for_each_row(heads, [&](const HeadRow& row) {
    const auto source = static_cast<std::size_t>(row.of_probe);
    const auto place = places[source].find(row.moment.step);
    if (place == places[source].end()) return;
    Tracks& of_source = row.of_probe ? tracks.probe : tracks.train;
    const std::int64_t layers = of_source.counts.layers, in_layer = of_source.heads_of(row.metric->name);
    if (row.layer >= layers || row.head >= in_layer)
      refuse(heads, row.row, "layer {}, head {}: absent a moment ago", row.layer, row.head);
    std::vector<bool>& known = filled[source][row.metric];
    known.resize(of_source.moments.size() * static_cast<std::size_t>(layers * in_layer));
    const std::size_t cell = place->second * static_cast<std::size_t>(layers * in_layer) +
                             static_cast<std::size_t>(row.layer * in_layer + row.head);
    if (known[cell])
      refuse(heads, row.row, "a second {} of step {}, layer {}, head {}", row.metric->name, row.moment.step, row.layer,
             row.head);
    known[cell] = true;
    of_source.set(row.metric->name, place->second, row.layer, row.head, row.value);
  });
}

void read_gains(const fs::path& gamma, RunTracks& tracks) {
  std::map<std::pair<std::int64_t, std::int64_t>, LayerGains> gains;
  std::map<std::int64_t, std::int64_t> wanted;  // tokens by step
  for (const Tracks* one : {&tracks.train, &tracks.probe})
    for (const Moment& moment : one->moments) wanted[moment.step] = moment.tokens;
  std::int64_t row = -1;
  std::size_t q_length = 0, k_length = 0;
  scan_parquet(gamma, {"step", "tokens", "layer", "kind", "vector"}, [&](const Table& rows) {
    const auto &step = rows.integers("step"), &tokens = rows.integers("tokens"), &layer = rows.integers("layer");
    const auto& kind = rows.texts("kind");
    const auto& vector = rows.vectors("vector");
    for (std::size_t i = 0; i < rows.rows(); ++i) {
      ++row;
      const auto known = wanted.find(step[i]);
      if (known == wanted.end()) continue;
      if (tokens[i] != known->second)
        refuse(gamma, row, "step {} has {} tokens, in heads.parquet {}", step[i], tokens[i], known->second);
      if (layer[i] < 0 || layer[i] >= tracks.train.counts.layers)
        refuse(gamma, row, "layer {}: out of range, heads.parquet has {} layers", layer[i], tracks.train.counts.layers);
      if (kind[i] != "q" && kind[i] != "k") refuse(gamma, row, "kind '{:.16}', expected 'q' or 'k'", kind[i]);
      std::size_t& length = kind[i] == "q" ? q_length : k_length;
      if (length == 0) length = vector[i].size();
      if (vector[i].size() != length || length == 0)
        refuse(gamma, row, "{} gains, expected {}", vector[i].size(), length == 0 ? "some" : fmt::format("{}", length));
      LayerGains& place = gains[{step[i], layer[i]}];
      place.moment = {step[i], tokens[i]};
      place.layer = layer[i];
      std::vector<double>& of_kind = kind[i] == "q" ? place.q : place.k;
      if (!of_kind.empty()) refuse(gamma, row, "second gains of step {}, layer {}, '{}'", step[i], layer[i], kind[i]);
      of_kind = vector[i];
    }
  });
  for (auto& [key, value] : gains) tracks.gains.push_back(std::move(value));
}

}  // namespace

std::int64_t Tracks::heads_of(std::string_view metric) const {
  const auto known = std::ranges::find(head_metrics(), metric, &Metric::name);
  const bool of_keys = known == head_metrics().end() ? metric.starts_with("k_") : known->kind == HeadKind::key;
  return of_keys ? counts.key_heads : counts.query_heads;
}

std::span<const double> Tracks::at(std::string_view metric, std::size_t moment) const {
  const auto found = values_.find(metric);
  if (found == values_.end()) return {};
  const auto size = static_cast<std::size_t>(counts.layers * heads_of(metric));
  return std::span(found->second).subspan(moment * size, size);
}

std::span<const double> Tracks::at(std::string_view metric, std::size_t moment, std::int64_t first,
                                   std::int64_t last) const {
  const std::int64_t heads = heads_of(metric);
  const std::span<const double> all = at(metric, moment);
  return all.empty() ? all
                     : all.subspan(static_cast<std::size_t>(first * heads),
                                   static_cast<std::size_t>((last - first + 1) * heads));
}

bool Tracks::has_all(std::span<const std::string_view> metrics) const {
  return std::ranges::all_of(metrics, [&](std::string_view metric) { return has(metric); });
}

std::vector<double> Tracks::of_head(std::string_view metric, std::int64_t layer, std::int64_t head) const {
  const auto place = static_cast<std::size_t>(layer * heads_of(metric) + head);
  std::vector<double> values;
  for (std::size_t i = 0; has(metric) && i < moments.size(); ++i) values.push_back(at(metric, i)[place]);
  return values;
}

std::vector<double> Tracks::of_layer(std::string_view metric, std::int64_t layer) const {
  std::vector<double> means;
  for (std::size_t i = 0; has(metric) && i < moments.size(); ++i) {
    double sum = 0;
    for (const double value : at(metric, i, layer, layer)) sum += value;
    means.push_back(sum / static_cast<double>(heads_of(metric)));
  }
  return means;
}

void Tracks::set(std::string_view metric, std::size_t moment, std::int64_t layer, std::int64_t head, double value) {
  auto found = values_.find(metric);
  const std::int64_t heads = heads_of(metric);
  if (found == values_.end()) {
    const auto size = moments.size() * static_cast<std::size_t>(counts.layers * heads);
    found = values_.emplace(std::string(metric), std::vector<double>(size, missing)).first;
  }
  HEADSCOPE_CHECK(layer < counts.layers && head < heads, "layer {}, head {} of {}", layer, head, metric);
  found->second[moment * static_cast<std::size_t>(counts.layers * heads) +
                static_cast<std::size_t>(layer * heads + head)] = value;
}

RunTracks read_tracks(const fs::path& folder, std::size_t most) {
  const fs::path heads = folder / heads_table;
  if (!fs::exists(folder)) fail_input("{}: is not there", folder.string());
  if (!fs::exists(part_folder(heads)))
    fail_input("{}: has no heads.parquet{}; give a folder that 'headscope train' or 'headscope inspect' wrote",
               folder.string(), runs_in(folder));
  RunTracks tracks;
  const Shape shape(heads);
  for (Tracks* one : {&tracks.train, &tracks.probe}) shape.give(*one, std::max<std::size_t>(most, 2));
  if (tracks.train.moments.empty() && tracks.probe.moments.empty())
    fail_input("{}: has no rows yet; wait for the run's first ones", heads.string());
  read_values(heads, tracks);
  const fs::path gamma = folder / gamma_table;
  if (fs::exists(part_folder(gamma))) read_gains(gamma, tracks);
  return tracks;
}

const Tracks* source_that_has(const RunTracks& tracks, std::string_view metric, const std::string& source) {
  if (!source.empty() && source != tracks.probe.source && source != tracks.train.source)
    fail_input("--source {}: expected probe (fixed held-out batch) or train (training batches)", source);
  for (const Tracks* one : {&tracks.probe, &tracks.train})
    if (!one->moments.empty() && (metric.empty() || one->has(metric)) && (source.empty() || source == one->source))
      return one;
  return nullptr;
}

void fail_before_the_first(std::int64_t step, const Tracks& tracks, std::size_t first) {
  fail_input("--step {}: the first measurement of '{}' is at step {}", step, tracks.source, tracks.moments[first].step);
}

double finite_mean(std::span<const double> values) {
  double sum = 0;
  std::size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? missing : sum / static_cast<double>(count);
}

LayerGroup layer_group(std::int64_t layer, std::int64_t layers) {
  if (layers == 2) return layer == 0 ? LayerGroup::early : LayerGroup::final;
  return static_cast<LayerGroup>(std::min<std::int64_t>(3 * layer / layers, 2));
}

std::vector<GroupLayers> layer_groups(std::int64_t layers) {
  std::vector<GroupLayers> groups;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const LayerGroup group = layer_group(layer, layers);
    if (groups.empty() || groups.back().group != group) groups.push_back({group, layer, layer});
    groups.back().last = layer;
  }
  return groups;
}

}  // namespace headscope
