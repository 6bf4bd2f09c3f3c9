// The tables of a training run, each a folder of Parquet parts that can be read at any time: steps, probes, layers,
// heads, gamma (docs/study.md lists their columns).
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "formats/part_table.h"
#include "heads/tracks.h"
#include "train/trainer.h"

namespace headscope {

// The number of rows of each table: what a checkpoint records.
using TableRows = std::map<std::string, std::int64_t>;

// When and on what something was measured.
struct Measured {
  Moment moment;
  std::string_view source;  // "train" or "probe"
};

// Rows wait in memory until flush().
class TrainTables {
 public:
  TrainTables(const std::filesystem::path& folder, const OptimizerOptions& optim);

  void add_step(const StepRecord& record, double tokens_per_s);
  // `loss`: training loss since the last probe; NaN at the first. `val_loss`: NaN where it was not taken.
  void add_probe(const Moment& moment, double loss, double val_loss, const std::vector<HeadValues>& layers);
  // Heads, and the means over those of a layer.
  void add_heads(const Measured& when, const std::vector<HeadValues>& layers);
  // How uniform gains are goes to the layers' table; the vectors, which do not depend on the source, only if asked for.
  void add_gains(const Measured& when, const Gains& gains, bool with_vectors);

  // Time to flush: memory is bounded, yet what is flushed are whole moments.
  [[nodiscard]] bool many_wait() const;
  // Writes waiting rows; returns how many each table has then.
  TableRows flush();
  // Back to what a checkpoint knew; a table that it does not name becomes empty.
  void truncate(const TableRows& rows);
  // At the end: one part each; a table without rows goes away.
  void merge();

 private:
  struct Steps {
    Integers step, tokens;
    Numbers loss, lr, adamw_lr, grad_norm, tokens_per_s;
  };
  struct Probes {
    Integers step, tokens;
    Numbers loss, val_loss, k_pr;
  };
  struct Layers {
    Integers step, tokens;
    Texts source;
    Integers layer;
    Texts metric;
    Numbers value;
  };
  struct Heads {
    Integers step, tokens;
    Texts source;
    Integers layer;
    Texts kind;
    Integers head;
    Texts metric;
    Numbers value;
  };
  struct Gamma {
    Integers step, tokens, layer;
    Texts kind;
    Vectors vector;
  };
  [[nodiscard]] std::map<std::string, Table> take_waiting();
  void add_layer(const Measured& when, std::size_t layer, std::string_view metric, double value);
  void add_vector(const Moment& moment, std::size_t layer, const char* kind, const Numbers& gain);

  OptimizerOptions optim_;
  std::map<std::string, PartTable> tables_;
  Steps steps_;
  Probes probes_;
  Layers layers_;
  Heads heads_;
  Gamma gamma_;
};

}  // namespace headscope
