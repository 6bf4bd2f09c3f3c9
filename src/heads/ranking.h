// `headscope heads`: which heads have most of a measurement, or changed most.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "heads/baseline.h"
#include "heads/tracks.h"

namespace headscope {

struct RankingOptions {
  std::string by = "change";               // a metric, or how much all of them changed
  std::int64_t top = 10;                   // heads that are listed
  std::optional<std::int64_t> step = {};   // the last measurement up to there; none: the last one
  std::optional<std::int64_t> layer = {};  // of this layer alone
  std::string source = {};                 // probe or train; empty: probe where it has the metric
  bool lowest = false;                     // those with least of it first
};

struct RankedHead {
  std::int64_t layer = 0, head = 0;
  HeadKind kind = HeadKind::query;
  std::string metric;  // that is shown: of a ranking by change, the one that changed most
  double score = 0;    // what the order is by: the value, or the change of all metrics
  double value = 0, start = 0;
  double error = 0;  // from one measurement to the next; NaN with fewer than three
  // The step by which half of the way from start to value was gone for good; none where the way is within twice the
  // error.
  std::optional<std::int64_t> since;
  [[nodiscard]] std::string name() const;  // L0H1 of a query head, L0K1 of a key head
};

// What a role asks for of the measurement, and the heads that have it.
struct AskedByRole {
  std::string name;
  double least = 0;
  std::size_t conditions = 1;  // of the role, this one among them
  std::size_t heads = 0;
};

struct Ranking {
  RankingOptions options;
  std::string source;
  Moment moment, first;
  std::size_t measurements = 0;      // up to that moment
  std::optional<Baseline> baseline;  // of the metric
  bool windows = false;              // why there is none
  std::size_t heads = 0;             // in all
  std::size_t above = 0, below = 0;  // the baseline, by 5 % of it and by more than twice their error
  std::optional<AskedByRole> role;   // the first that asks for this measurement
  std::vector<RankedHead> ranked;    // the first `top`

  bool even = true;  // measured at steps that lie about equally far apart

  [[nodiscard]] bool has_error() const { return measurements > 2 && even; }
};

// Throws Error(Fault::input): an unknown or unmeasured metric, a layer or a source that is not there.
Ranking rank_heads(const RunTracks& tracks, const BatchShape& shape, const RankingOptions& options);

// What the run's configuration says.
BatchShape read_batch_shape(const std::filesystem::path& run);

std::string to_terminal(const Ranking& ranking);
nlohmann::ordered_json to_json(const Ranking& ranking);

}  // namespace headscope
