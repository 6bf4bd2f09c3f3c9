#include "formats/part_table.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "core/atomic_file.h"
#include "core/error.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

std::string part_name(std::size_t index) {
  return fmt::format("part-{:05}.parquet", index);
}

// The path without a slash at its end.
fs::path plain(const fs::path& folder) {
  return folder.has_filename() ? folder : folder.parent_path();
}

fs::path beside(const fs::path& folder, const char* before, const char* behind) {
  return folder.parent_path() / (before + folder.filename().string() + behind);
}

fs::path aside(const fs::path& folder) {
  return beside(folder, "", ".parts");
}

fs::path merged_place(const fs::path& folder) {
  return beside(folder, ".", ".merged");
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void sync_parent(const fs::path& path) {
  sync_folder(parent_of(path));
}

void remove_file(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (error) fail_runtime("cannot remove {}: {}", file.string(), error.message());
}

// A writer that follows a link changes files elsewhere. A link that was there before the run is bad input; one that
// came during the run is a failure of the run.
void refuse_link(const fs::path& path, Fault fault = Fault::input) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error)))
    throw Error(fault, fmt::format("{}: is a symbolic link; a table is written to a folder of its own; remove the link",
                                   path.string()));
}

void move_to(const fs::path& from, const fs::path& to) {
  rename_to(from, to);
  sync_parent(to);
}

// False where the file system cannot exchange names.
bool exchange(const fs::path& a, const fs::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) != 0) return false;
  sync_parent(a);
  return true;
}

// The names that we make in the folder of a table: part-00000.parquet, and the temporary name of one.
bool is_part(std::string_view name) {
  constexpr std::string_view before = "part-", behind = ".parquet";
  if (!name.starts_with(before) || !name.ends_with(behind) || name.size() <= before.size() + behind.size())
    return false;
  name = name.substr(before.size(), name.size() - before.size() - behind.size());
  return name.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_half_written_part(std::string_view name) {
  const auto file = name_of_temporary(name);
  return file && is_part(*file);
}

bool is_ours(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename().string();
  return fs::is_regular_file(entry.symlink_status()) && (is_part(name) || is_half_written_part(name));
}

std::vector<fs::directory_entry> entries(const fs::path& folder, Fault fault = Fault::runtime) {
  std::error_code error;
  std::vector<fs::directory_entry> found;
  for (auto entry = fs::directory_iterator(folder, error); entry != fs::directory_iterator(); entry.increment(error))
    found.push_back(*entry);
  if (error) throw Error(fault, fmt::format("cannot read {}: {}", folder.string(), error.message()));
  return found;
}

// Whether merge() made the folder: a user may have one of the same name.
bool is_of_parts(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(fs::symlink_status(folder, error))) return false;
  const auto found = entries(folder);
  return std::ranges::all_of(found, is_ours) ||
         std::ranges::any_of(found, [](const auto& entry) { return is_part(entry.path().filename().string()); });
}

// Removes a folder of parts that the table no longer needs. Files that are not ours move to the table's folder, or stay
// where their name is taken there.
void retire(const fs::path& parts, const fs::path& folder) {
  refuse_link(parts, Fault::runtime);
  for (const fs::directory_entry& entry : entries(parts)) {
    const fs::path place = folder / entry.path().filename();
    if (is_ours(entry))
      remove_file(entry.path());
    else if (!fs::exists(fs::symlink_status(place)))
      move_to(entry.path(), place);
  }
  std::error_code error;
  fs::remove(parts, error);  // if it is empty
}

// Repairs what a crash during merge() left; see the header.
void recover(const fs::path& folder) {
  const fs::path parts = aside(folder), merged = merged_place(folder);
  for (const fs::path& place : {folder, parts, merged}) refuse_link(place);
  if (is_of_parts(parts)) {
    if (fs::exists(folder))
      retire(parts, folder);
    else
      move_to(parts, folder);
  }
  if (is_of_parts(merged) && fs::exists(folder)) retire(merged, folder);
}

void remove_half_written(const fs::path& folder) {
  for (const fs::directory_entry& entry : entries(folder))
    if (is_ours(entry) && is_half_written_part(entry.path().filename().string())) remove_file(entry.path());
}

}  // namespace

fs::path part_folder(const fs::path& folder) {
  const fs::path named = plain(folder);
  return !fs::exists(named) && fs::is_directory(aside(named)) ? aside(named) : named;
}

std::vector<fs::path> part_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : entries(folder, Fault::input)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("part-") && name.ends_with(".parquet")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return std::pair(a.native().size(), a) < std::pair(b.native().size(), b);  // part-100000 follows part-99999
  });
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i].filename() != part_name(i))
      fail_input("{}: there is no {}, yet {} is there; the table is damaged", folder.string(), part_name(i),
                 files[i].filename().string());
  return files;
}

PartTable::PartTable(fs::path folder, std::function<void()> before_rename)
    : folder_(plain(folder)), before_rename_(std::move(before_rename)) {
  recover(folder_);
  make_folder(folder_);
  remove_half_written(folder_);
  for (const fs::path& file : part_files(folder_)) {
    refuse_link(file);
    rows_.push_back(parquet_rows(file));
  }
}

fs::path PartTable::part(std::size_t index) const {
  return folder_ / part_name(index);
}

std::vector<fs::path> PartTable::files() const {
  std::vector<fs::path> files;
  for (std::size_t i = 0; i < rows_.size(); ++i) files.push_back(part(i));
  return files;
}

std::int64_t PartTable::rows() const {
  return std::accumulate(rows_.begin(), rows_.end(), std::int64_t{0});
}

void PartTable::append(const Table& rows) {
  if (rows.rows() == 0) return;
  AtomicFile file(part(rows_.size()), parent_of(folder_));
  file.write(to_parquet(rows));
  file.commit([this] { check(); });
  rows_.push_back(static_cast<std::int64_t>(rows.rows()));
}

void PartTable::check() const {
  if (before_rename_) before_rename_();
  refuse_link(folder_, Fault::runtime);
}

void PartTable::remove_last_part() {
  check();
  remove_file(part(rows_.size() - 1));
  sync_folder(folder_);  // so that parts are removed in this order on the disk, too
  rows_.pop_back();
}

void PartTable::truncate_rows(std::int64_t rows) {
  if (rows > this->rows()) fail_input("{}: {} rows were expected, {} are there", folder_.string(), rows, this->rows());
  while (!rows_.empty() && this->rows() - rows_.back() >= rows) remove_last_part();
  const std::int64_t excess = this->rows() - rows;
  if (excess == 0) return;
  check();
  const fs::path last = part(rows_.size() - 1);
  join_parquet(last, {last}, rows_.back() - excess);
  rows_.back() -= excess;
}

void PartTable::remove() {
  while (!rows_.empty()) remove_last_part();
  std::error_code error;
  fs::remove(folder_, error);  // if nothing else is in it
}

void PartTable::merge() {
  if (rows_.empty()) return;
  const fs::path merged = merged_place(folder_);
  check();
  refuse_link(merged);
  if (is_of_parts(merged)) retire(merged, folder_);
  std::error_code error;
  if (!fs::create_directory(merged, error) && !error)
    fail_input("{}: is in the way of merging {}; move it elsewhere", merged.string(), folder_.string());
  if (error) fail_runtime("cannot make the folder {}: {}", merged.string(), error.message());
  try {
    join_parquet(merged / part_name(0), files());
  } catch (...) {
    retire(merged, folder_);  // a full disk needs the room
    throw;
  }
  const std::int64_t all = rows();
  check();
  if (exchange(merged, folder_)) {
    rows_ = {all};
    retire(merged, folder_);  // which now is the folder of the parts
    return;
  }
  move_to(folder_, aside(folder_));
  move_to(merged, folder_);
  rows_ = {all};
  retire(aside(folder_), folder_);
}

}  // namespace headscope
