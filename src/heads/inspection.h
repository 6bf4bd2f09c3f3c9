// One measurement of every head of a checkpoint: what is asked and what was found.
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

// The keys of the setup that an inspection may change.
constexpr std::array<std::string_view, 9> changeable_keys = {
    "data.path",          "data.validation", "data.validation_share", "data.text_column",        "data.tokenizer",
    "data.language_seed", "train.batch",     "train.seq_len",         "train.validation_batches"};

struct InspectOptions {
  std::string checkpoint;  // or a run, for its newest one
  std::string metrics = "all";
  std::string device = "auto";
  // Of those keys. By default what the model was trained with: the batches are then those of its probes.
  std::vector<ConfigEntry> changes;
};

struct Inspection {
  std::string checkpoint = {};
  std::string architecture = {};  // of a published model; empty: ours
  RunTracks tracks = {};          // one moment, of probes
  HeadSummary summary = {};
  double val_loss = 0;
  Moment moment = {};
  std::string device = {}, source = {};  // where, and on what data
};

struct InspectJob {
  InspectOptions options;
  RunFolderOptions folder;
};

// What else is written of an inspection, into the folder `place`, before the run is finished.
using WriteMore = std::function<void(const Inspection&, const RunFacts&, const std::filesystem::path& place)>;

}  // namespace headscope
