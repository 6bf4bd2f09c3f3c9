// The tables of a run, each a folder of Parquet parts that can be read at any time: steps, probes, layers, heads, gamma
// (docs/study.md lists their columns). Rows are handed over as they come. What the summary of the run needs is kept in
// memory on the way.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/console.h"
#include "formats/part_table.h"
#include "formats/table.h"
#include "heads/tracks.h"

namespace headscope {

inline constexpr const char* steps_table = "steps.parquet";
inline constexpr const char* probes_table = "probes.parquet";

// The number of rows of each table: what a checkpoint records.
using TableRows = std::map<std::string, std::int64_t>;

// One update.
struct StepRow {
  Moment moment;  // after it
  double loss = 0, lr = 0, adamw_lr = 0, grad_norm = 0, tokens_per_s = 0;
};

// The losses at a probe; missing where they were not taken.
struct ProbeLosses {
  Moment moment;
  double train = 0;  // mean since the last probe
  double validation = 0;
};

// Those of every probe of a run, from its probes.parquet. Throws Error(Fault::input).
std::vector<ProbeLosses> read_losses(const std::filesystem::path& folder);

// Rows of a table come in the order of training. Throws Error(Fault::input) naming the row, counted from 0, that does
// not, or whose numbers no run has.
void check_next_moment(const std::filesystem::path& table, std::size_t row, const Moment& moment,
                       const std::optional<Moment>& before);

// How many moments each source will have, and how many of them are kept: so many at equal distances, the first and the
// last among them. A run of any length fits into memory.
struct ExpectedMoments {
  std::size_t train = 0, probe = 0;
  std::size_t most = most_kept_moments;
};

// The tracks of a run, put together while it goes on: what read_tracks would read from its tables at the end.
class TrackCollector {
 public:
  explicit TrackCollector(const ExpectedMoments& expected);

  // The moments of a source come in order.
  void add(const Measured& when, const std::vector<HeadValues>& layers);
  void add_gains(const Moment& moment, const Gains& gains);

  [[nodiscard]] RunTracks tracks() const;
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  struct Kept {
    Moment moment;
    std::vector<HeadValues> layers;
  };
  struct Source {
    std::vector<std::size_t> places;  // of the moments to keep, ascending
    std::size_t seen = 0;
    std::vector<Kept> kept = {};
  };
  void keep_gains(const Moment& moment);

  std::size_t most_;
  Source train_, probe_;
  Moment last_gains_at_;  // a probe and a measurement of the training batch may share a moment and its gains
  Gains last_gains_;
  std::map<std::int64_t, std::pair<Moment, Gains>> gains_;  // by step
};

// Rows wait in memory until flush().
class RunTables {
 public:
  // `keep`: the moments that the run will have, to be kept for tracks(). `before_rename`: see PartTable.
  explicit RunTables(const std::filesystem::path& folder, const ExpectedMoments& keep = {},
                     const std::function<void()>& before_rename = {});

  void add_step(const StepRow& row);
  void add_probe(const ProbeLosses& losses, const std::vector<HeadValues>& layers);
  // Heads, and the means over those of a layer.
  void add_heads(const Measured& when, const std::vector<HeadValues>& layers);
  // The layers' table says how uniform gains are. The vectors do not depend on the source: they are written if asked
  // for.
  void add_gains(const Measured& when, const Gains& gains, bool with_vectors);

  // Waiting rows should be flushed, so that a reader sees what there is: soon in a short run, and without thousands of
  // parts in a long one; or because they are very many. They are flushed after a whole moment, never within one.
  [[nodiscard]] bool flush_is_due() const;
  // Writes waiting rows; returns how many each table has then.
  TableRows flush();
  // Back to what a checkpoint knew; a table that it does not name becomes empty.
  void truncate(const TableRows& rows);
  // At the end: one part each; a table without rows goes away.
  void merge();

  // What was measured: of a run that went on from a checkpoint as its files have it, otherwise from memory. The heads
  // of a run that measured none have no moments.
  [[nodiscard]] RunTracks tracks() const;
  // Of every probe.
  [[nodiscard]] std::vector<ProbeLosses> losses() const;

 private:
  void add_layer(const Measured& when, std::size_t layer, std::string_view metric, double value);

  std::filesystem::path folder_;
  std::map<std::string, PartTable> tables_;
  Clock::time_point started_ = Clock::now(), flushed_ = started_;
  using Whole = std::int64_t;
  Rows<Whole, Whole, double, double, double, double, double> steps_{
      {"step", "tokens", "loss", "lr", "adamw_lr", "grad_norm", "tokens_per_s"}};
  Rows<Whole, Whole, double, double, double> probes_{{"step", "tokens", "loss", "val_loss", "k_pr"}};
  Rows<Whole, Whole, std::string, Whole, std::string, double> layers_{
      {"step", "tokens", "source", "layer", "metric", "value"}};
  Rows<Whole, Whole, std::string, Whole, std::string, Whole, std::string, double> heads_{
      {"step", "tokens", "source", "layer", "kind", "head", "metric", "value"}};
  Rows<Whole, Whole, Whole, std::string, Numbers> gamma_{{"step", "tokens", "layer", "kind", "vector"}};
  TrackCollector collector_;
  std::vector<ProbeLosses> losses_;
  bool went_on_ = false;  // rows of an earlier process are in the files
};

}  // namespace headscope
