#include "tracks/tracks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "formats/parquet_table.h"
#include "formats/part_table.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

constexpr double absent = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t most_heads = 1 << 16;  // a damaged table must not ask for all memory

// Where a moment is in the arrays, by step.
using Places = std::map<std::int64_t, std::size_t>;

// At most `most` of them, at equal distances.
std::vector<Moment> thinned(const std::map<std::int64_t, std::int64_t>& tokens_of_step, std::size_t most) {
  std::vector<Moment> all;
  for (const auto& [step, tokens] : tokens_of_step) all.push_back({step, tokens});
  if (all.size() <= most) return all;
  std::vector<Moment> chosen;
  for (std::size_t i = 0; i < most; ++i) chosen.push_back(all[i * (all.size() - 1) / (most - 1)]);
  return chosen;
}

// First pass: the moments and the numbers of heads.
void find_shape(const fs::path& heads, RunTracks& tracks, std::size_t most) {
  std::map<std::string, std::map<std::int64_t, std::int64_t>> moments;
  HeadCounts counts;
  scan_parquet(heads, {"step", "tokens", "source", "layer", "kind", "head"}, [&](const Table& rows) {
    const auto &step = rows.integers("step"), &tokens = rows.integers("tokens"), &layer = rows.integers("layer"),
               &head = rows.integers("head");
    const auto &source = rows.texts("source"), &kind = rows.texts("kind");
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      if (layer[row] < 0 || layer[row] >= most_heads || head[row] < 0 || head[row] >= most_heads)
        fail_input("{}: row {}: layer {}, head {}: out of range; the table is damaged", heads.string(), row, layer[row],
                   head[row]);
      moments[source[row]][step[row]] = tokens[row];
      counts.layers = std::max(counts.layers, layer[row] + 1);
      std::int64_t& of_kind = kind[row] == "k" ? counts.key_heads : counts.query_heads;
      of_kind = std::max(of_kind, head[row] + 1);
    }
  });
  for (Tracks* one : {&tracks.train, &tracks.probe}) {
    one->moments = thinned(moments[one->source], most);
    one->counts = counts;
  }
}

Places places_of(const std::vector<Moment>& moments) {
  Places places;
  for (std::size_t i = 0; i < moments.size(); ++i) places[moments[i].step] = i;
  return places;
}

// Second pass: the values.
void read_values(const fs::path& heads, RunTracks& tracks) {
  const Places train = places_of(tracks.train.moments), probe = places_of(tracks.probe.moments);
  scan_parquet(heads, {"step", "source", "layer", "head", "metric", "value"}, [&](const Table& rows) {
    const auto &step = rows.integers("step"), &layer = rows.integers("layer"), &head = rows.integers("head");
    const auto &source = rows.texts("source"), &metric = rows.texts("metric");
    const Numbers value = rows.numbers("value");
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      const bool is_probe = source[row] == "probe";
      const Places& places = is_probe ? probe : train;
      const auto place = places.find(step[row]);
      if (place == places.end()) continue;
      (is_probe ? tracks.probe : tracks.train).set(metric[row], place->second, layer[row], head[row], value[row]);
    }
  });
}

void read_gains(const fs::path& gamma, RunTracks& tracks) {
  std::map<std::pair<std::int64_t, std::int64_t>, LayerGains> gains;
  std::set<std::int64_t> wanted;
  for (const Tracks* one : {&tracks.train, &tracks.probe})
    for (const Moment& moment : one->moments) wanted.insert(moment.step);
  scan_parquet(gamma, {"step", "tokens", "layer", "kind", "vector"}, [&](const Table& rows) {
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      const std::int64_t step = rows.integers("step")[row], layer = rows.integers("layer")[row];
      if (!wanted.contains(step)) continue;
      LayerGains& place = gains[{step, layer}];
      place.moment = {step, rows.integers("tokens")[row]};
      place.layer = layer;
      (rows.texts("kind")[row] == "q" ? place.q : place.k) = rows.vectors("vector")[row];
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
    found = values_.emplace(std::string(metric), std::vector<double>(size, absent)).first;
  }
  HEADSCOPE_CHECK(layer < counts.layers && head < heads, "layer {}, head {} of {}", layer, head, metric);
  found->second[moment * static_cast<std::size_t>(counts.layers * heads) +
                static_cast<std::size_t>(layer * heads + head)] = value;
}

RunTracks read_tracks(const fs::path& folder, std::size_t most) {
  const fs::path heads = folder / "heads.parquet";
  if (!fs::exists(part_folder(heads)))
    fail_input("{}: has no heads.parquet; give a folder that 'headscope train' or 'headscope inspect' wrote",
               folder.string());
  RunTracks tracks;
  find_shape(heads, tracks, std::max<std::size_t>(most, 2));
  if (tracks.train.moments.empty() && tracks.probe.moments.empty())
    fail_input("{}: has no rows yet; wait for the run's first ones", heads.string());
  read_values(heads, tracks);
  const fs::path gamma = folder / "gamma.parquet";
  if (fs::exists(part_folder(gamma))) read_gains(gamma, tracks);
  return tracks;
}

double finite_mean(std::span<const double> values) {
  double sum = 0;
  std::size_t count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? absent : sum / static_cast<double>(count);
}

LayerGroup layer_group(std::int64_t layer, std::int64_t layers) {
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
