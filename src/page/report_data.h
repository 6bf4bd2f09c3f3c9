// Runs of any command, read into one struct: what a page shows. Nothing is locked and nothing is written: a run that
// another process is writing is read as far as it got.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/missing.h"
#include "heads/roles/roles.h"
#include "heads/run_tables.h"
#include "heads/tracks.h"
#include "heads/training_log.h"
#include "page/levels.h"
#include "study/analyze.h"

namespace headscope {

// Several updates: the values of the last, and the range of the loss.
struct StepBucket {
  StepRow last;
  double loss_min = missing, loss_max = missing;
};
inline constexpr std::size_t most_step_buckets = 1000;

// The steps in at most `most` buckets of as many steps each.
std::vector<StepBucket> step_buckets(const std::vector<StepRow>& steps, std::size_t most = most_step_buckets);

inline constexpr std::size_t most_events = 2000;  // the last ones are shown

// A level to hold a loss against.
struct LossLevel {
  std::string name;
  double value = missing;
};

// The roles of the heads over time.
struct RoleCourse {
  RolesResult roles;
  std::vector<MomentLabels> labels;  // at the moments that can be compared
};

// Attention of some heads on some texts (attention.parquet and tokens.parquet of `inspect`).
struct ShownAttention {
  std::size_t text = 0;
  std::int64_t layer = 0, head = 0;
  std::string bytes;  // the lower triangle row by row, a byte for each weight: round(255 · √weight)
};
struct AttentionData {
  std::vector<std::vector<std::string>> texts;  // the pieces of each
  std::vector<ShownAttention> heads;            // by text, layer, head
};

// A place where a head attends (examples.parquet of `inspect`).
struct ShownExample {
  std::int64_t layer = 0, head = 0;
  double quantile = missing, strength = missing;
  std::int64_t document = 0, query = 0, key = 0;
  std::int64_t query_at = 0;           // in the pieces
  std::optional<std::int64_t> key_at;  // none: it is not among them
  std::vector<std::string> pieces;
  std::string bytes;  // of the weights, as above
};

// A question of summary.json as a reader sees it.
struct Answer {
  std::string key, question, sentence;
  std::string number;              // the main number with its interval; may be empty
  std::vector<std::string> rules;  // by which it was answered
  std::string go;                  // the view that shows it: "m=k_norm&h=3.1"
};

// Columns of numbers of the same length, for a block.
struct NumberColumns {
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;  // of each name

  [[nodiscard]] std::size_t rows() const { return values.empty() ? 0 : values.front().size(); }
};

// A table as HTML shows it.
struct TextTable {
  std::string kind;     // its class: "plasticity", "comparison", "surgery"
  std::string caption;  // what it is
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::size_t left_out = 0;  // rows
};

// One model that was trained or measured: a run, or one condition of a study.
struct ReportRun {
  std::string name, command, status, started;
  std::string device;
  std::optional<std::string> ended;
  std::optional<Condition> condition;
  std::optional<std::int64_t> seed;
  std::string same_heads;  // runs with the same text have heads that correspond; empty: with no other

  RunTracks tracks;  // no moments where nothing was measured
  std::int64_t d_k = 0;
  std::optional<RoleCourse> roles;
  BatchShape shape;            // of the batch that was measured
  MetricLevels metric_levels;  // what its values can be held against
  std::vector<StepBucket> steps;
  std::vector<ProbeLosses> probes;
  std::vector<LossLevel> levels;
  std::vector<TrainingEvent> events;
  std::vector<std::string> notes = {};  // what of it could not be read
  std::size_t events_left_out = 0;
  std::vector<Answer> answers;
  AttentionData attention;
  std::vector<ShownExample> examples;
  nlohmann::ordered_json plasticity, comparison, surgery;  // null: of another command
  NumberColumns plasticity_cells;                          // layer, head, q_bucket, k_bucket, value, se
  std::vector<TextTable> tables;
  nlohmann::ordered_json manifest;  // of a condition: null
  std::optional<TrainingProgress> progress;

  [[nodiscard]] bool has_tracks() const { return !tracks.train.moments.empty() || !tracks.probe.moments.empty(); }
  [[nodiscard]] bool has_attention() const { return !attention.heads.empty() || !examples.empty(); }
  // Of the tracks; without any as many as attention tells of.
  [[nodiscard]] HeadCounts counts() const;
};

struct ReportStudy {
  std::string name;
  Study study;
  StudyResult result;
};

struct ReportData {
  std::string title;
  std::vector<ReportRun> runs;
  std::vector<ReportStudy> studies;
  std::vector<nlohmann::ordered_json> manifests;  // of the folders that were named
  std::vector<std::string> notes;                 // what could not be read, for the page and the terminal
  std::size_t most_moments = most_kept_moments;   // that were read of each source
};

// Each folder is a run of any command, a condition of a study, or a folder with results of a study
// (study/runs.h). Throws Error(Fault::input) naming the folder that is none of these, or that holds nothing to show.
// Of each source at most `most` moments are read, evenly spaced.
ReportData read_report(const std::vector<std::filesystem::path>& folders, std::size_t most = most_kept_moments);

}  // namespace headscope
