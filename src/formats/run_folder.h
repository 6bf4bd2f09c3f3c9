// The folder that a command writes: manifest.json, config.yaml, tables and figures. One process writes it at a time; a
// folder whose manifest does not say "complete" can be resumed.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/descriptor.h"
#include "core/error.h"

namespace headscope {

struct RunFolderOptions {
  std::filesystem::path out;
  bool overwrite = false;  // replace a run that is there
  bool resume = false;     // go on with it
};

enum class RunStatus { running, interrupted, failed, incomplete, complete };

// What the manifest records beside status and times.
struct RunDescription {
  std::string command;            // the subcommand: "plasticity"
  std::string command_line;       // as typed
  nlohmann::ordered_json config;  // resolved
  nlohmann::ordered_json facts;   // whatever else makes the run self-describing: definitions, device, seeds
};

class RunFolder {
 public:
  // Creates the folder, or opens it to resume, and locks it. Throws Error(Fault::input) when the folder exists and
  // neither `overwrite` nor `resume` is given, when it is not a run folder, when it is of another command, when another
  // process writes it, or when `resume` meets a changed configuration (the differing keys are named; `free_keys` may
  // differ).
  RunFolder(const RunFolderOptions& options, RunDescription description,
            const std::vector<std::string>& free_keys = {});

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }
  // The folder was there and says it is complete: nothing is left to do.
  [[nodiscard]] bool already_complete() const { return already_complete_; }

  // A file of the run, written atomically; folders above it are made.
  void write(const std::filesystem::path& name, std::string_view content) const;
  // Last of all: the manifest with its final status and results.
  void finish(RunStatus status, const nlohmann::ordered_json& results);
  // The same for a run that an error ended, which is the one to report: a full disk may refuse this last note, too.
  void finish(const Error& error) noexcept;

 private:
  void take_lock();
  void write_manifest(RunStatus status, const nlohmann::ordered_json& results) const;

  std::filesystem::path path_;
  RunDescription description_;
  std::string started_;
  Descriptor lock_;
  bool already_complete_ = false;
};

// manifest.json of a run folder. Throws Error(Fault::input) naming the folder when there is none or it is damaged.
nlohmann::ordered_json read_manifest(const std::filesystem::path& run);

}  // namespace headscope
