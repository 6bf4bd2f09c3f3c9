// Every name that headscope makes in a run folder. What is not listed here belongs to the user: it is never removed,
// and a folder that holds it is not replaced.
#pragma once

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

constexpr const char* manifest_name = "manifest.json";
constexpr const char* config_name = "config.yaml";
constexpr const char* lock_name = ".lock";
constexpr const char* claim_name = "claim.json";        // which process writes this folder (claim.h)
constexpr const char* progress_name = "progress.json";  // of a training (heads/training_log.h)
constexpr const char* events_name = "events.jsonl";
constexpr const char* checkpoints_name = "checkpoints";  // the folder of a training's
constexpr const char* plots_name = "plots";              // the folder of the figures
constexpr const char* roles_folder = "roles";            // of roles that were asked for after training

// The folders of a study's conditions (study/conditions.h says what they are). A study may have others of its own.
constexpr std::array<std::string_view, 7> condition_tags = {
    "QK", "QK_frozen", "NoQK", "QK_nodecay", "QK_decay_to_one", "QK_scalar", "NoQK_scaled"};

// A name for a condition: letters, digits, - and _, and not that of a folder which has another meaning in a run.
bool is_condition_tag(std::string_view name);

// Folders of a run folder's own life; replacement.h says when each is there.
constexpr const char* writing_name = ".writing";
constexpr const char* publishing_name = ".publishing";
constexpr const char* replaced_name = ".replaced";
constexpr const char* removing_name = ".removing";

class RunNames {
 public:
  RunNames();
  // The names that a user chose, from the manifest: tables of a run of plasticity, conditions of a study.
  void add_chosen(const nlohmann::ordered_json& manifest);

  // A path relative to the run folder: the name of a file that we make, or of a folder that we make for such files.
  [[nodiscard]] bool is_ours(const std::filesystem::path& relative, bool is_folder) const;
  // The name of what only a process that was killed leaves behind: half-written files and folders.
  [[nodiscard]] bool is_leftover(const std::filesystem::path& relative, bool is_folder) const;

 private:
  void add_trainings(const std::string& places);
  [[nodiscard]] bool is_half_written(std::string_view path) const;

  std::vector<std::string> files_, half_written_, unfinished_folders_;  // patterns
};

// What killed processes left in the run folder, or below `inside` of it, relative to the run: files, and folders that
// hold nothing else.
std::vector<std::filesystem::path> leftovers(const std::filesystem::path& run, const RunNames& names,
                                             const std::filesystem::path& inside = {});

// The first of the folders of the run's life that is not one, or an entry in one of them that is not ours.
std::optional<std::filesystem::path> foreign_entry_of_the_life(const std::filesystem::path& run, const RunNames& names);

// An entry of the run folder, or below `inside` of it, that is not ours; none when all are. Links are not followed.
std::optional<std::filesystem::path> foreign_entry(const std::filesystem::path& run, const RunNames& names,
                                                   const std::filesystem::path& inside = {});

// What is ours below `run`, relative to it, in a fixed order: files, and folders that hold nothing else. A folder in
// which the user keeps a file is gone through. The lock, the claim of the run and the four folders of the run's life
// are no part of it.
std::vector<std::filesystem::path> our_entries(const std::filesystem::path& run, const RunNames& names);

// An entry below `folder` that has one of our names and is a symbolic link: to write there would write elsewhere.
std::optional<std::filesystem::path> linked_entry(const std::filesystem::path& folder, const RunNames& names);

// A name for a table that a user may choose: a plain file name that ends in .csv.
bool is_plain_csv_name(std::string_view name);

}  // namespace headscope
