// manifest.json: what a run folder is and how far it got.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace headscope {

enum class RunStatus { running, interrupted, failed, incomplete, complete };
std::string_view status_name(RunStatus status);

constexpr const char* program_name = "headscope";  // what a manifest says under "program"

// One spelling for a folder, however a user types it: "runs/first/", "runs/./first" and "runs/x/../first" give the same
// path, absolute and without a slash at the end.
std::filesystem::path absolute_folder(const std::filesystem::path& folder);

// Throws Error(Fault::input) naming the folder when there is none, or when it is damaged or of another program.
nlohmann::ordered_json read_manifest(const std::filesystem::path& run);

// A manifest of ours is there, or in .replaced, where a process that was killed left it.
bool is_run(const std::filesystem::path& folder);

// " (it holds runs: seed_3, seed_4)" for messages; empty where none lies directly in the folder.
std::string runs_in(const std::filesystem::path& folder);

// The manifest says that the run is complete. False where there is none.
bool is_complete(const std::filesystem::path& run);

// The same file with another status, which is not a longer word than the one that is there: a full disk may have no
// room for another file. Nothing else is changed, and where this is not possible, nothing.
void set_status_in_place(const std::filesystem::path& run, RunStatus status);

// Threads of the CPU of the process that wrote this manifest last; nothing where it does not say.
std::optional<std::int64_t> threads_in(const nlohmann::ordered_json& manifest);

// The run that the folder is, or is a part of: a condition of a study has no manifest of its own. Empty without one.
std::filesystem::path run_around(const std::filesystem::path& folder);

// What figures and texts call a run: its folder, and what it is a run of where the folder's name does not say so:
// "first (tiny)", "tiny_long", "study/QK (tiny)".
std::string run_title(const std::filesystem::path& folder, const std::string& of);

}  // namespace headscope
