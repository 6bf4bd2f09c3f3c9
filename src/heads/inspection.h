// A measurement of every head of a model, or of several of one training: what is asked and what was found.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/config.h"
#include "heads/summary.h"
#include "run/run_folder.h"

namespace headscope {

constexpr const char* inspect_command = "inspect";

inline constexpr std::int64_t most_examples = 1000;         // of a head: people look at some
inline constexpr std::int64_t most_shown_tokens = 1 << 16;  // of a text

// The keys of the setup that an inspection may change.
constexpr std::array<std::string_view, 10> changeable_keys = {"data.path",
                                                              "data.validation",
                                                              "data.validation_share",
                                                              "data.text_column",
                                                              "data.tokenizer",
                                                              "data.language_seed",
                                                              "train.batch",
                                                              "train.seq_len",
                                                              "train.validation_batches",
                                                              "data.validation_sample"};

// What is written of the attention of single heads.
struct AttentionOptions {
  std::string text;           // a file of text; empty: nothing is written
  std::int64_t tokens = 128;  // of each text: its first ones. A page can show so many.
  std::string heads;          // "L3H5,L1H2"; empty: all of a small model, 64 by role of one with more than 256
};

struct InspectOptions {
  // One, or several of one model: checkpoints of a run, or published revisions. A run stands for its newest.
  std::vector<std::string> checkpoints;
  std::vector<std::int64_t> steps = {};  // of each; empty: as checkpoints and names of revisions say
  std::string metrics = "all";
  std::string device = "auto";
  AttentionOptions attention = {};
  std::int64_t examples = 0;  // of each query head; 0: none
  // Of those keys. By default what the model was trained with: the batches are then those of its probes.
  std::vector<ConfigEntry> changes;
};

// A model that was measured.
struct MeasuredModel {
  std::string checkpoint;
  Moment moment;
  double val_loss = 0;
  std::string weights;  // hash of all values: the same for the same weights in other files
};

inline nlohmann::ordered_json to_json(const MeasuredModel& model) {
  return {{"checkpoint", model.checkpoint},
          {"step", model.moment.step},
          {"tokens", model.moment.tokens},
          {"val_loss", model.val_loss},
          {"weights_xxh3_128", model.weights}};
}

struct Inspection {
  std::vector<MeasuredModel> models = {};  // by step; none of a published model of which only texts were read
  std::string architecture = {};           // of a published model; empty: ours
  RunTracks tracks = {};                   // of probes, a moment for each model
  HeadSummary summary = {};
  std::string device = {}, source = {};  // where, and on what data
};

struct InspectJob {
  InspectOptions options;
  RunFolderOptions folder;
};

// Several models are many minutes of work: what is measured of each is kept when it is there.
inline RunWrites writes_of(const InspectOptions& options) {
  return options.checkpoints.size() > 1 ? RunWrites::as_it_goes : RunWrites::at_the_end;
}

constexpr const char* attention_name = "attention.parquet";
constexpr const char* tokens_name = "tokens.parquet";
constexpr const char* examples_name = "examples.parquet";
constexpr const char* models_name = "models.json";  // of several: what was measured, when, its loss and hash

// What else is written of an inspection, into the folder `place`, before the run is finished.
using WriteMore = std::function<void(const Inspection&, const RunFacts&, const std::filesystem::path& place)>;

}  // namespace headscope
