// Every name that headscope makes in a run folder. What is not listed here belongs to the user: it is never removed,
// and a folder that holds it is not replaced.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headscope {

constexpr const char* manifest_name = "manifest.json";
constexpr const char* config_name = "config.yaml";
constexpr const char* lock_name = ".lock";

// Folders of a run folder's own life; replacement.h says when each is there.
constexpr const char* writing_name = ".writing";
constexpr const char* publishing_name = ".publishing";
constexpr const char* replaced_name = ".replaced";
constexpr const char* removing_name = ".removing";

class RunNames {
 public:
  // `manifest`: of the run. A run of plasticity may give its tables names of its own.
  explicit RunNames(const nlohmann::ordered_json& manifest = {});

  // A path relative to the run folder: a file that we make, or a folder that we make for such files.
  [[nodiscard]] bool is_ours(const std::filesystem::path& relative) const;
  // What only a process that was killed leaves behind: half-written files and folders.
  [[nodiscard]] bool is_leftover(const std::filesystem::path& relative) const;

 private:
  std::vector<std::string> files_, leftovers_;  // patterns
};

// The leftovers below `folder`.
std::vector<std::filesystem::path> leftovers(const std::filesystem::path& folder, const RunNames& names);

// An entry below `folder` that is not ours; none when all are. Links are not followed.
std::optional<std::filesystem::path> foreign_entry(const std::filesystem::path& folder, const RunNames& names);

// An entry below `folder` that has one of our names and is a symbolic link: to write there would write elsewhere.
std::optional<std::filesystem::path> linked_entry(const std::filesystem::path& folder, const RunNames& names);

// A name for a table that a user may choose: a plain file name that ends in .csv.
bool is_plain_csv_name(std::string_view name);

}  // namespace headscope
