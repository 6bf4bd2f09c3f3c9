#include "run/replacement.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_text.h"
#include "run/manifest.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

void erase(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_runtime("cannot remove {}: {}", path.string(), error.message());
}

// The names in a folder, in a fixed order.
std::vector<std::string> content(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_folder(const fs::path& path) {
  return fs::is_directory(fs::symlink_status(path));
}

void remove_folder(const fs::path& folder) {
  if (::rmdir(folder.c_str()) != 0 && errno != ENOENT)
    fail_runtime("cannot remove {}: {}", folder.string(), std::strerror(errno));
}

// A file takes the place of a file, a folder that of nothing; folders that are on both sides are gone through.
void move_into(const fs::path& from, const fs::path& to) {
  if (!is_there(to) || !is_folder(from) || !is_folder(to)) return rename_to(from, to);
  for (const std::string& name : content(from)) move_into(from / name, to / name);
  sync_folder(to);
  remove_folder(from);
}

// What move_into() cannot do.
void refuse_obstacles(const fs::path& from, const fs::path& to) {
  if (!is_there(to)) return;
  if (is_folder(from) != is_folder(to))
    fail_runtime("{}: is in the way of a {} of the same name; move it elsewhere", to.string(),
                 is_folder(from) ? "folder" : "file");
  if (is_folder(from))
    for (const std::string& name : content(from)) refuse_obstacles(from / name, to / name);
}

// What is ours in the run folder goes away. The manifest goes first: without it, what is left is known to be of a run
// that is being removed.
void remove_run(const fs::path& run, const RunNames& names) {
  erase(run / manifest_name);
  sync_folder(run);
  for (const fs::path& entry : our_entries(run, names)) remove_ours(run, entry);
}

// The status is `running` while files are moved. A full disk may refuse this; the moves need no room.
void mark_as_running(const fs::path& run) {
  try {
    nlohmann::ordered_json manifest = read_manifest(run);
    if (manifest["status"] != status_name(RunStatus::complete)) return;
    manifest["status"] = status_name(RunStatus::running);
    write_file(run / manifest_name, json_text(manifest));
  } catch (const Error&) {
  }
}

}  // namespace

void remove_leftovers(const fs::path& run, const RunNames& names, const fs::path& inside) {
  for (const fs::path& leftover : leftovers(run, names, inside)) erase(run / leftover);
}

void remove_ours(const fs::path& run, const fs::path& relative) {
  // In part, these two are leftovers all the same.
  if (!is_folder(run / relative) || relative == removing_name || relative == writing_name) return erase(run / relative);
  const fs::path removing = run / removing_name;
  erase(removing);
  make_folder((removing / relative).parent_path());
  rename_to(run / relative, removing / relative);
  erase(removing);
}

void set_aside(const fs::path& run, const RunNames& names) {
  const fs::path replaced = run / replaced_name;
  if (is_there(replaced)) return remove_run(run, names);
  make_folder(replaced);
  std::vector<fs::path> entries = our_entries(run, names);
  std::stable_partition(entries.begin(), entries.end(), [](const fs::path& entry) { return entry != manifest_name; });
  for (const fs::path& entry : entries) {
    const fs::path place = replaced / entry;
    make_folder(place.parent_path());
    rename_to(run / entry, place);
    sync_folder(place.parent_path());
    sync_folder((run / entry).parent_path());
  }
}

void put_back(const fs::path& run, const RunNames& names) {
  const fs::path replaced = run / replaced_name;
  if (is_there(replaced / manifest_name)) {
    remove_run(run, names);
    rename_to(replaced / manifest_name, run / manifest_name);
    sync_folder(run);
    sync_folder(replaced);
  }
  for (const std::string& name : content(replaced)) move_into(replaced / name, run / name);
  sync_folder(run);
  remove_folder(replaced);
}

void drop_replaced(const fs::path& run) {
  if (is_there(run / replaced_name)) remove_ours(run, replaced_name);
}

void publish(const fs::path& run) {
  const fs::path writing = run / writing_name, publishing = run / publishing_name;
  if (is_there(writing)) {
    refuse_obstacles(writing, run);
    rename_to(writing, publishing);
  }
  sync_folder(run);
  if (is_there(publishing / manifest_name)) mark_as_running(run);
  for (const std::string& name : content(publishing))
    if (name != manifest_name) move_into(publishing / name, run / name);
  sync_folder(run);
  if (is_there(publishing / manifest_name)) rename_to(publishing / manifest_name, run / manifest_name);
  sync_folder(run);
  remove_folder(publishing);
}

void repair(const fs::path& run, const RunNames& names) {
  if (is_there(run / publishing_name)) publish(run);
  if (!is_there(run / replaced_name)) return;
  if (!is_there(run / replaced_name / manifest_name) || !is_there(run / manifest_name))
    put_back(run, names);
  else if (is_complete(run))
    drop_replaced(run);
}

}  // namespace headscope
