// The tables of a run as arrays: every measurement at every moment of every head.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heads/metrics.h"

namespace headscope {

struct HeadCounts {
  std::int64_t layers = 0;
  std::int64_t key_heads = 0;    // of a layer; 0: none was measured
  std::int64_t query_heads = 0;  // of a layer
};

// Gains of one layer at one moment.
struct LayerGains {
  Moment moment;
  std::int64_t layer = 0;
  std::vector<double> q, k;  // [d_k]
};

// What one source (training batches or probes) measured.
class Tracks {
 public:
  explicit Tracks(std::string name) : source(std::move(name)) {}

  std::string source;  // "train" or "probe"
  HeadCounts counts;
  std::vector<Moment> moments;  // in order
  std::size_t measured = 0;     // moments that the table has, of which these were kept; 0: not read from a table

  [[nodiscard]] bool has(std::string_view metric) const { return values_.contains(metric); }
  [[nodiscard]] bool has_all(std::span<const std::string_view> metrics) const;
  // All heads of the model at one moment, layer by layer: [layer][head]. NaN where nothing was measured; empty when the
  // metric never was.
  [[nodiscard]] std::span<const double> at(std::string_view metric, std::size_t moment) const;
  // Those of the layers from `first` to `last`.
  [[nodiscard]] std::span<const double> at(std::string_view metric, std::size_t moment, std::int64_t first,
                                           std::int64_t last) const;
  // One head over time.
  [[nodiscard]] std::vector<double> of_head(std::string_view metric, std::int64_t layer, std::int64_t head) const;
  // The mean over the heads of a layer over time.
  [[nodiscard]] std::vector<double> of_layer(std::string_view metric, std::int64_t layer) const;
  // Heads of a layer that a metric is measured of.
  [[nodiscard]] std::int64_t heads_of(std::string_view metric) const;
  // The key head that a query head reads.
  [[nodiscard]] std::int64_t key_head_of(std::int64_t query_head) const {
    return query_head * counts.key_heads / counts.query_heads;
  }

  // A value; the moment must be one of `moments`. For readers and tests.
  void set(std::string_view metric, std::size_t moment, std::int64_t layer, std::int64_t head, double value);

 private:
  std::map<std::string, std::vector<double>, std::less<>> values_;  // [moment][layer][head]
};

struct RunTracks {
  Tracks train{"train"}, probe{"probe"};  // each may have no moments
  std::vector<LayerGains> gains;          // by moment, then layer; empty without QK-Norm

  // The one with more moments, the fixed batch of the probes when there are as many; and the other one.
  [[nodiscard]] const Tracks& finest() const { return train.moments.size() > probe.moments.size() ? train : probe; }
  [[nodiscard]] const Tracks& other() const { return &finest() == &train ? probe : train; }
};

// The source that was asked for, or the probes before the training batches; nothing where it lacks the metric, or has
// no moments. An empty metric: any. Throws Error(Fault::input) on another name than probe and train.
const Tracks* source_that_has(const RunTracks& tracks, std::string_view metric, const std::string& source);

// "--step 3: the first measurement of 'probe' is at step 5".
[[noreturn]] void fail_before_the_first(std::int64_t step, const Tracks& tracks, std::size_t first = 0);

// More make no figure or finding better; a run of any length fits into memory.
inline constexpr std::size_t most_kept_moments = 1000;

inline constexpr const char* heads_table = "heads.parquet";
inline constexpr const char* gamma_table = "gamma.parquet";

// heads.parquet and gamma.parquet of a folder. Of each source at most `most` moments (evenly_spaced). Rows of sources
// and metrics that this version does not know are left out. Throws Error(Fault::input) naming the folder when it has no
// such table, or the row that makes no sense, counted from 0 over all parts.
RunTracks read_tracks(const std::filesystem::path& folder, std::size_t most = most_kept_moments);

// The mean of the finite values; NaN without any.
double finite_mean(std::span<const double> values);

// Layers in thirds: early, middle, final (seed 002). Two layers are early and final, one is early.
enum class LayerGroup { early, middle, final };
constexpr std::array<std::string_view, 3> layer_group_names = {"early", "middle", "final"};
LayerGroup layer_group(std::int64_t layer, std::int64_t layers);
constexpr std::string_view name_of(LayerGroup group) {
  return layer_group_names[static_cast<std::size_t>(group)];
}

// A group and its layers, which follow each other.
struct GroupLayers {
  LayerGroup group = LayerGroup::early;
  std::int64_t first = 0, last = 0;
};
// The groups that have layers, in order.
std::vector<GroupLayers> layer_groups(std::int64_t layers);

}  // namespace headscope
