// The measurements of heads: the one list of their names (docs/measurements.md gives formulas and sources), their
// values in one layer at one moment, and when that was.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config.h"

namespace headscope {

// What is computed together, and what --track picks.
enum class MetricGroup { norm, outlier, rank, redundancy, attention, pattern, induction, gain, other_rank, score };
constexpr std::array<std::string_view, 10> metric_group_names = {
    "norm", "outlier", "rank", "redundancy", "attention", "pattern", "induction", "gain", "other_rank", "score"};

enum class HeadKind { key, query };
constexpr std::array<std::string_view, 2> head_kind_names = {"k", "q"};  // in the tables

// "L5H1" of a query head, "L5K1" of a key head.
std::string head_text(HeadKind kind, std::int64_t layer, std::int64_t head);
// Layer and head of "L5H1"; nothing for any other text.
std::optional<std::pair<std::int64_t, std::int64_t>> query_head_named(std::string_view name);

struct Metric {
  std::string_view name;
  MetricGroup group;
  HeadKind kind;          // the heads that it is measured of
  std::string_view unit;  // empty: a pure number
  std::string_view meaning;
  bool averaged = true;  // the mean over a layer's heads makes sense
};

// Every measurement of a head, in the order of the tables.
std::span<const Metric> head_metrics();

// Throws Error(Fault::input) naming the nearest one; `where` says who asked: "--show".
const Metric& metric_named(std::string_view name, std::string_view where);

// Which measurements to make.
class MetricSelection {
 public:
  // "all", or groups and names of metrics, comma-separated. The groups other_rank and score, which a study needs, are
  // not in all: others name them. Throws Error(Fault::input) naming what it does not know; `where` says who asked.
  MetricSelection(std::string_view text, std::string_view where);

  [[nodiscard]] bool has(std::string_view metric) const { return metrics_.contains(metric); }
  [[nodiscard]] bool has(MetricGroup group) const { return groups_.contains(group); }
  bool operator==(const MetricSelection&) const = default;

 private:
  std::set<std::string_view> metrics_;
  std::set<MetricGroup> groups_;  // those that have a chosen metric
};

// What is measured of every head on the way, on the training batches themselves (between probes).
struct TrackOptions {
  std::int64_t every = 10;      // updates; 0: never. At 10 it costs less than noise between runs
  std::string metrics = "all";  // groups and names, as MetricSelection takes them; of probes, too

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("track.every", self.every, "Between measurements of the training batch; 0: none",
          SizeRange{0, most_tokens, "updates"});
    visit("track.metrics", self.metrics, "What is measured: groups and names of metrics, or all");
  }
};
void validate(const TrackOptions& options);

// Values of the layer's heads by the name of the measurement (heads/metrics.h).
using HeadValues = std::map<std::string_view, std::vector<double>>;

// QK-Norm's gains of every layer; empty without QK-Norm.
struct Gains {
  std::vector<std::vector<double>> q, k;  // [layer][d_k]
};

// The updates that the weights had had, and the tokens of those.
struct Moment {
  std::int64_t step = 0;
  std::int64_t tokens = 0;

  bool operator==(const Moment&) const = default;
};

// How far training had come: in tokens, or in updates where revisions of a published model do not say their tokens,
// which are 0 then.
struct Course {
  bool in_tokens = true;
  [[nodiscard]] std::int64_t at(const Moment& moment) const { return in_tokens ? moment.tokens : moment.step; }
};
Course course_of(std::span<const Moment> moments);

// Tables take no larger step, and no more tokens.
inline constexpr std::int64_t most_steps_or_tokens = std::int64_t{1} << 53;

// "step 150 (614,400 tokens)"; "step 150" where tokens are not known.
std::string moment_text(const Moment& moment, std::string_view before = "step ");
// " at step 150"; empty at step 0, which is that of a published model that says nothing of its training.
std::string at_step_text(const Moment& moment);

// When and on what something was measured.
struct Measured {
  Moment moment;
  std::string_view source;  // "train" or "probe"
};

}  // namespace headscope
