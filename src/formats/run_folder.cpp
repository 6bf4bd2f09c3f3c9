#include "formats/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/error.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* manifest_name = "manifest.json";
constexpr const char* lock_name = ".lock";

std::string_view status_name(RunStatus status) {
  constexpr std::string_view names[] = {"running", "interrupted", "failed", "incomplete", "complete"};
  return names[static_cast<std::size_t>(status)];
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Hidden files are ours: the lock, and temporary files that a killed process left.
bool is_hidden(const fs::path& file) {
  return file.filename().string().starts_with('.');
}

bool has_entries(const fs::path& folder) {
  return std::any_of(fs::directory_iterator(folder), fs::directory_iterator(),
                     [](const fs::directory_entry& entry) { return !is_hidden(entry.path()); });
}

// What a killed process left: half-written files and folders of figures that were being drawn.
void sweep_leftovers(const fs::path& folder) {
  std::vector<fs::path> leftovers;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    if (!is_hidden(entry->path()) || entry->path().filename() == lock_name) continue;
    leftovers.push_back(entry->path());
    entry.disable_recursion_pending();
  }
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover);
}

// Keys whose values differ, "key (was 1, now 2)".
std::vector<std::string> differences(const ordered_json& before, const ordered_json& now,
                                     const std::vector<std::string>& free_keys) {
  std::vector<std::string> found;
  const ordered_json flat_before = before.flatten(), flat_now = now.flatten();
  const auto compare = [&](const std::string& pointer, const ordered_json& old_value, const ordered_json& new_value) {
    std::string key = pointer.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    if (std::find(free_keys.begin(), free_keys.end(), key) != free_keys.end()) return;
    if (old_value != new_value)
      found.push_back(fmt::format("{} (was {}, now {})", key, old_value.dump(), new_value.dump()));
  };
  for (const auto& [pointer, value] : flat_now.items())
    compare(pointer, flat_before.value(pointer, ordered_json()), value);
  for (const auto& [pointer, value] : flat_before.items())
    if (!flat_now.contains(pointer)) compare(pointer, value, ordered_json());
  return found;
}

void clear(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder))
    if (!is_hidden(entry.path())) fs::remove_all(entry.path());
}

}  // namespace

RunFolder::RunFolder(const RunFolderOptions& options, RunDescription description,
                     const std::vector<std::string>& free_keys)
    : path_(options.out), description_(std::move(description)), started_(utc_now()) {
  if (options.overwrite && options.resume) fail_input("--overwrite and --resume exclude each other");
  std::error_code error;
  if (fs::exists(path_, error) && !fs::is_directory(path_, error))
    fail_input("--out {}: is a file; expected a folder", path_.string());
  const bool occupied = fs::is_directory(path_, error) && has_entries(path_);
  if (occupied && !fs::exists(path_ / manifest_name, error))
    fail_input("--out {}: holds files but no {}, so it is not a run folder; choose another", path_.string(),
               manifest_name);
  if (occupied && !options.overwrite && !options.resume)
    fail_input("--out {}: exists; go on with --resume, replace it with --overwrite, or choose another", path_.string());
  fs::create_directories(path_, error);
  if (error) fail_input("--out {}: cannot be made: {}", path_.string(), error.message());
  take_lock();
  if (occupied) {
    const ordered_json manifest = read_manifest(path_);
    const std::string command = manifest.value("command", "");
    if (command != description_.command)
      fail_input("--out {}: is a run of '{}', not of '{}'", path_.string(), command, description_.command);
    if (options.resume) {
      const auto changed =
          differences(manifest.value("config", ordered_json::object()), description_.config, free_keys);
      if (!changed.empty())
        fail_input("--resume {}: the configuration changed: {}", path_.string(), fmt::join(changed, ", "));
      already_complete_ = manifest.value("status", "") == status_name(RunStatus::complete);
      started_ = manifest.value("started", started_);
      if (already_complete_) return;
    } else {
      clear(path_);
    }
  }
  write_manifest(RunStatus::running, ordered_json::object());
  write("config.yaml", yaml_of(description_.config));
}

void RunFolder::take_lock() {
  const fs::path file = path_ / lock_name;
  lock_ = Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock_.open()) fail_input("--out {}: cannot be written: {}", path_.string(), std::strerror(errno));
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    fail_input("--out {}: another process is writing it; wait for it or choose another folder", path_.string());
  sweep_leftovers(path_);
}

void RunFolder::write(const fs::path& name, std::string_view content) const {
  const fs::path file = path_ / name;
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) fail_runtime("cannot make the folder {}: {}", file.parent_path().string(), error.message());
  write_file(file, content);
}

void RunFolder::write_manifest(RunStatus status, const ordered_json& results) const {
  ordered_json manifest = {{"program", "headscope"},          {"version", HEADSCOPE_VERSION},
                           {"command", description_.command}, {"command_line", description_.command_line},
                           {"status", status_name(status)},   {"started", started_}};
  if (status != RunStatus::running) manifest["ended"] = utc_now();
  manifest["config"] = description_.config;
  for (const auto& [key, value] : description_.facts.items()) manifest[key] = value;
  for (const auto& [key, value] : results.items()) manifest[key] = value;
  write(manifest_name, manifest.dump(2) + "\n");
}

void RunFolder::finish(const Error& error) noexcept {
  try {
    finish(error.fault() == Fault::interrupted ? RunStatus::interrupted : RunStatus::failed, {{"error", error.what()}});
  } catch (const std::exception&) {
  }
}

void RunFolder::finish(RunStatus status, const ordered_json& results) {
  write_manifest(status, results);
}

ordered_json read_manifest(const fs::path& run) {
  const fs::path file = run / manifest_name;
  if (!fs::exists(file)) fail_input("{}: is not a run folder: it holds no {}", run.string(), manifest_name);
  ordered_json manifest = ordered_json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object()) fail_input("{}: is damaged: not a JSON object", file.string());
  return manifest;
}

}  // namespace headscope
