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

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_runtime("cannot make the folder {}: {}", folder.string(), error.message());
}

void rename_to(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    fail_runtime("cannot rename {} to {}: {}", from.string(), to.string(), std::strerror(errno));
}

void erase(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail_runtime("cannot remove {}: {}", path.string(), error.message());
}

// The names in a folder that make up a run, in a fixed order. The folders of its life and the lock are no part of it.
std::vector<std::string> content(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::erase_if(names, [](const std::string& name) {
    return name == lock_name || name == writing_name || name == publishing_name || name == replaced_name ||
           name == removing_name;
  });
  std::sort(names.begin(), names.end());
  return names;
}

// The manifest goes last or first: where it is says how far the move got.
enum class ManifestMoves { last, first };

void move_content(const fs::path& from, const fs::path& to, ManifestMoves when) {
  std::vector<std::string> names = content(from);
  std::stable_partition(names.begin(), names.end(), [&](const std::string& name) {
    return (name == manifest_name) == (when == ManifestMoves::first);
  });
  for (const std::string& name : names) {
    rename_to(from / name, to / name);
    sync_folder(to);
    sync_folder(from);
  }
}

void remove_folder(const fs::path& folder) {
  if (::rmdir(folder.c_str()) != 0 && errno != ENOENT)
    fail_runtime("cannot remove {}: {}", folder.string(), std::strerror(errno));
}

// A file takes the place of a file, a folder that of nothing; folders that are on both sides are gone through.
void move_into(const fs::path& from, const fs::path& to) {
  if (!is_there(to) || !fs::is_directory(fs::symlink_status(from)) || !fs::is_directory(fs::symlink_status(to))) {
    if (is_there(to) && fs::is_directory(fs::symlink_status(to)) != fs::is_directory(fs::symlink_status(from)))
      fail_runtime("{}: is in the way of what is written there; remove it", to.string());
    return rename_to(from, to);
  }
  for (const std::string& name : content(from)) move_into(from / name, to / name);
  sync_folder(to);
  remove_folder(from);
}

// While files take their places, a complete run is not. A full disk may refuse this; the moves need no room.
void mark_as_running(const fs::path& run) {
  try {
    if (!is_complete(run)) return;
    nlohmann::ordered_json manifest = read_manifest(run);
    manifest["status"] = status_name(RunStatus::running);
    write_file(run / manifest_name, json_text(manifest));
  } catch (const Error&) {
  }
}

}  // namespace

void remove_ours(const fs::path& run, const fs::path& entry) {
  if (!fs::is_directory(fs::symlink_status(entry))) return erase(entry);
  const fs::path removing = run / removing_name;
  if (entry == removing || entry == run / writing_name)
    return erase(entry);  // in part, they are leftovers all the same
  erase(removing);
  rename_to(entry, removing);
  erase(removing);
}

void set_aside(const fs::path& run) {
  const fs::path replaced = run / replaced_name;
  if (!is_there(replaced)) {
    make_folder(replaced);
    move_content(run, replaced, ManifestMoves::last);
    return;
  }
  // The manifest goes first: without it, what is left is known to be the new run's.
  erase(run / manifest_name);
  sync_folder(run);
  for (const std::string& name : content(run)) remove_ours(run, run / name);
}

void put_back(const fs::path& run) {
  const fs::path replaced = run / replaced_name;
  if (is_there(replaced / manifest_name)) {
    erase(run / manifest_name);
    sync_folder(run);
    for (const std::string& name : content(run)) remove_ours(run, run / name);
  }
  move_content(replaced, run, ManifestMoves::first);
  remove_folder(replaced);
}

void drop_replaced(const fs::path& run) {
  if (is_there(run / replaced_name)) remove_ours(run, run / replaced_name);
}

void publish(const fs::path& run) {
  const fs::path writing = run / writing_name, publishing = run / publishing_name;
  if (is_there(writing)) rename_to(writing, publishing);
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
  for (const fs::path& leftover : leftovers(run, names)) remove_ours(run, leftover);
  if (is_there(run / publishing_name)) publish(run);
  if (!is_there(run / replaced_name)) return;
  if (!is_there(run / replaced_name / manifest_name) || !is_there(run / manifest_name))
    put_back(run);
  else if (is_complete(run))
    drop_replaced(run);
}

}  // namespace headscope
