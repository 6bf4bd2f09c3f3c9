// manifest.json: what a run folder is and how far it got.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace headscope {

enum class RunStatus { running, interrupted, failed, incomplete, complete };
std::string_view status_name(RunStatus status);

// Throws Error(Fault::input) naming the folder when there is none or it is damaged.
nlohmann::ordered_json read_manifest(const std::filesystem::path& run);

// The manifest says that the run is complete. False where there is none.
bool is_complete(const std::filesystem::path& run);

// The run that the folder is, or is a part of: a condition of a study has no manifest of its own. Empty without one.
std::filesystem::path run_around(const std::filesystem::path& folder);

}  // namespace headscope
