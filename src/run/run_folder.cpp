#include "run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/json_text.h"
#include "run/names.h"
#include "run/replacement.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
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
    if (json_line(old_value) != json_line(new_value))
      found.push_back(fmt::format("{} (was {}, now {})", key, json_line(old_value), json_line(new_value)));
  };
  for (const auto& [pointer, value] : flat_now.items())
    compare(pointer, flat_before.value(pointer, ordered_json()), value);
  for (const auto& [pointer, value] : flat_before.items())
    if (!flat_now.contains(pointer)) compare(pointer, value, ordered_json());
  return found;
}

// The names of a run that may be damaged: then those that every run has.
RunNames names_in(const fs::path& run) {
  std::error_code error;
  if (!fs::is_regular_file(run / manifest_name, error)) return RunNames();
  return RunNames(ordered_json::parse(read_file(run / manifest_name), nullptr, /*allow_exceptions=*/false));
}

bool has_manifest(const fs::path& run) {
  std::error_code error;
  return fs::exists(run / manifest_name, error) || fs::exists(run / replaced_name / manifest_name, error);
}

// Before anything is made: a folder that is not there, is empty, or holds what a kill left of a run that had not begun
// is free; any other must be a run.
bool is_occupied(const fs::path& out) {
  std::error_code error;
  const fs::file_status status = fs::status(out, error);
  if (status.type() == fs::file_type::not_found) return false;
  if (!fs::is_directory(status)) fail_input("--out {}: is a file; expected a folder", out.string());
  if (has_manifest(out)) return true;
  const auto listing = fs::directory_iterator(out, error);
  if (error) fail_input("--out {}: cannot be read: {}", out.string(), error.message());
  const RunNames names;
  for (const auto& entry : listing)
    if (entry.path().filename() != lock_name && !names.is_leftover(entry.path().filename()))
      fail_input("--out {}: holds {} but no {}, so it is not a run folder; choose another", out.string(),
                 entry.path().filename().string(), manifest_name);
  return false;
}

}  // namespace

RunFolder::RunFolder(fs::path root, fs::path path, RunDescription description)
    : root_(std::move(root)),
      path_(std::move(path)),
      place_(path_),
      description_(std::move(description)),
      started_(utc_now()) {}

RunFolder::RunFolder(const RunFolderOptions& options, RunDescription description)
    : RunFolder(options.out, options.out, std::move(description)) {
  if (options.overwrite && options.resume) fail_input("--overwrite and --resume exclude each other");
  const auto refuse_unasked = [&] {
    if (!options.overwrite && !options.resume)
      fail_input("--out {}: exists; go on with --resume, replace it with --overwrite, or choose another",
                 path_.string());
  };
  if (is_occupied(path_)) refuse_unasked();
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) fail_input("--out {}: cannot be made: {}", path_.string(), error.message());
  take_lock();
  if (is_occupied(path_)) {  // perhaps only now: another process was faster
    refuse_unasked();
    open_existing(options);
  }
  if (!already_complete_) begin();
}

RunFolder RunFolder::add_to(const fs::path& place) {
  const fs::path root = run_around(place);
  if (root.empty()) fail_input("{}: is not a run folder: it holds no {}", place.string(), manifest_name);
  RunFolder run(root, place, {});
  run.take_lock();
  run.keeps_status_ = true;
  const fs::path inside = fs::absolute(place / "").parent_path().lexically_relative(root);
  run.write_below(inside == "." ? fs::path() : inside);
  return run;
}

// Locks the folder and puts in order what a killed process left.
void RunFolder::take_lock() {
  const fs::path file = root_ / lock_name;
  lock_ = Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  struct stat status {};
  if (!lock_.open() || ::fstat(lock_.get(), &status) != 0)
    fail_input("{}: cannot be written: {}: {}", root_.string(), lock_name, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail_input("{}: is not a regular file; remove it", file.string());
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail_input("{}: cannot be locked: {}", root_.string(), std::strerror(errno));
    fail_input("{}: another process is writing it; wait for it or choose another folder", root_.string());
  }
  const RunNames names = names_in(root_);
  if (const auto link = linked_entry(root_, names))
    fail_input("{}: is a symbolic link; a run is written inside its own folder only: put the file itself there",
               link->string());
  repair(root_, names);
}

// What is there is a run: goes on with it or prepares to replace it.
void RunFolder::open_existing(const RunFolderOptions& options) {
  const ordered_json manifest = read_manifest(root_);
  const std::string command = manifest.value("command", "");
  if (command != description_.command)
    fail_input("--out {}: is a run of '{}', not of '{}'", path_.string(), command, description_.command);
  if (options.overwrite) {
    if (const auto foreign = foreign_entry(root_, RunNames(manifest)))
      fail_input("--overwrite {}: {} is not of the run; move it, or choose another folder", path_.string(),
                 foreign->lexically_relative(root_).string());
    replaces_ = keeps_status_ = true;
    return;
  }
  const auto changed =
      differences(manifest.value("config", ordered_json::object()), description_.config, description_.free_keys);
  if (!changed.empty())
    fail_input("--resume {}: the configuration changed: {}", path_.string(), fmt::join(changed, ", "));
  already_complete_ = manifest.value("status", "") == status_name(RunStatus::complete);
  started_ = manifest.value("started", started_);
  replaces_ = description_.writes == RunWrites::at_the_end;
}

void RunFolder::begin() {
  if (description_.writes == RunWrites::at_the_end) {
    write_below({});
    if (!keeps_status_) write_manifest(root_, RunStatus::running, ordered_json::object());
    return write(config_name, yaml_of(description_.config));
  }
  if (replaces_) put_aside();
  try {
    write_manifest(root_, RunStatus::running, ordered_json::object());
    write(config_name, yaml_of(description_.config));
  } catch (...) {
    if (aside_) put_back(root_);
    throw;
  }
}

void RunFolder::put_aside() {
  set_aside(root_);
  aside_ = true;
}

void RunFolder::write_below(const fs::path& inside) {
  const fs::path writing = root_ / writing_name;
  place_ = inside.empty() ? writing : writing / inside;
  std::error_code error;
  fs::create_directories(place_, error);
  if (error) fail_runtime("cannot make the folder {}: {}", place_.string(), error.message());
}

fs::path RunFolder::final_name(const fs::path& file) const {
  return path_ / file.lexically_relative(place_);
}

void RunFolder::write(const fs::path& name, std::string_view content) const {
  const fs::path file = place_ / name;
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error) fail_runtime("cannot make the folder {}: {}", file.parent_path().string(), error.message());
  write_file(file, content);
}

void RunFolder::write_manifest(const fs::path& folder, RunStatus status, const ordered_json& results) const {
  ordered_json manifest = {{"program", "headscope"},          {"version", HEADSCOPE_VERSION},
                           {"command", description_.command}, {"command_line", description_.command_line},
                           {"status", status_name(status)},   {"started", started_}};
  if (status != RunStatus::running) manifest["ended"] = utc_now();
  manifest["config"] = description_.config;
  for (const auto& [key, value] : description_.facts.items()) manifest[key] = value;
  for (const auto& [key, value] : results.items()) manifest[key] = value;
  write_file(folder / manifest_name, json_text(manifest));
}

void RunFolder::finish(RunStatus status, const ordered_json& results) {
  if (place_ == path_) {
    write_manifest(root_, status, results);
  } else {
    write_manifest(root_ / writing_name, status, results);
    if (replaces_) put_aside();
    publish(root_);
  }
  if (status == RunStatus::complete) drop_replaced(root_);
}

void RunFolder::finish() {
  write_file(root_ / writing_name / manifest_name, read_file(root_ / manifest_name));
  publish(root_);
}

void RunFolder::fail(RunStatus status, const std::string& message) noexcept {
  try {
    std::error_code error;
    if (fs::exists(root_ / publishing_name, error)) return;  // all is written: the next command finishes it
    const bool in_place = place_ == path_;
    if (!in_place) remove_ours(root_, root_ / writing_name);
    if (aside_ && (!in_place || has_only_begun())) return put_back(root_);
    if (!keeps_status_ || in_place) write_manifest(root_, status, {{"error", message}});
  } catch (const std::exception&) {
  }
}

// No file of the new run is there beside its manifest and configuration.
bool RunFolder::has_only_begun() const {
  for (auto entry = fs::recursive_directory_iterator(root_); entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path relative = entry->path().lexically_relative(root_);
    if (relative == replaced_name) entry.disable_recursion_pending();
    if (entry->is_directory() || relative == manifest_name || relative == config_name || relative == lock_name)
      continue;
    return false;
  }
  return true;
}

}  // namespace headscope
