#include "core/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// Takes ".1234" from the end.
bool take_number(std::string_view& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == 0 || digits == name.size() || name[digits - 1] != '.') return false;
  name = name.substr(0, digits - 1);
  return true;
}

// Locks a new file against remove_leftovers(). False when that was faster.
bool is_kept(const Descriptor& file) {
  ::flock(file.get(), LOCK_EX);  // file systems without locks refuse this to both sides
  struct stat status {};
  return ::fstat(file.get(), &status) != 0 || status.st_nlink > 0;
}

}  // namespace

std::optional<std::string_view> name_of_temporary(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(".tmp")) return std::nullopt;
  name = name.substr(1, name.size() - 5);
  if (!take_number(name) || !take_number(name)) return std::nullopt;
  return name;
}

void remove_leftovers(const fs::path& file) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_of(file), error)) {
    const std::string name = entry.path().filename().string();
    if (name_of_temporary(name) != file.filename().string() || !fs::is_regular_file(entry.symlink_status(error)))
      continue;
    const Descriptor left(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (left.open() && ::flock(left.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
  }
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

void sync_folder(const fs::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.open()) ::fsync(descriptor.get());
}

AtomicFile::AtomicFile(fs::path file) : AtomicFile(file, folder_of(file)) {}

AtomicFile::AtomicFile(fs::path file, const fs::path& temporary_in) : file_(std::move(file)) {
  static std::atomic<unsigned> counter = 0;  // two threads that write beside each other need two names
  do {
    temporary_ = temporary_in / fmt::format(".{}.{}.{}.tmp", file_.filename().string(), ::getpid(), counter++);
    descriptor_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!descriptor_.open() && errno == EEXIST) continue;  // left by a process that had our number, in a container
    if (!descriptor_.open()) give_up("creating it");
  } while (!descriptor_.open() || !is_kept(descriptor_));
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::give_up(const char* doing) {
  const int reason = errno;
  ::unlink(temporary_.c_str());
  temporary_.clear();
  fail_runtime("cannot write {}: {} while {}; nothing was changed", file_.string(), std::strerror(reason), doing);
}

void AtomicFile::write(std::string_view bytes) {
  write_at(bytes, size_);
}

void AtomicFile::write_at(std::string_view bytes, std::int64_t offset) {
  if (!descriptor_.write_at(bytes, offset)) give_up("writing");
  size_ = std::max(size_, offset + static_cast<std::int64_t>(bytes.size()));
}

void AtomicFile::commit(const std::function<void()>& before_rename) {
  if (::fsync(descriptor_.get()) != 0) give_up("syncing");
  if (before_rename) before_rename();
  commit_unsynced();
  sync_folder(folder_of(file_));
}

void AtomicFile::commit_unsynced() {
  if (!descriptor_.close()) give_up("closing");
  if (::rename(temporary_.c_str(), file_.c_str()) != 0) give_up("renaming");
  temporary_.clear();
}

void write_file(const fs::path& file, std::string_view content) {
  AtomicFile out(file);
  out.write(content);
  out.commit();
}

void replace_file(const fs::path& file, std::string_view content) {
  AtomicFile out(file);
  out.write(content);
  out.commit_unsynced();
}

std::string read_file(const fs::path& file, std::size_t most) {
  const RegularFile opened = open_regular_file(file);
  if (opened.size > most)
    fail_input("{}: has {} bytes; expected at most {} in such a file", file.string(), opened.size, most);
  std::string content(opened.size, '\0');
  content.resize(opened.read(std::as_writable_bytes(std::span(content))));  // the file may have become shorter
  return content;
}

}  // namespace headscope
