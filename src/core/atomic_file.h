// The one way to write a file: to a temporary name in the same folder, synced, checked on close, renamed. A reader sees
// the old content or the new, never a part; a full disk leaves the old file as it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/regular_file.h"

namespace headscope {

// Writes content that is too large for one string, piece by piece. commit() gives the file its name; without commit()
// the destructor removes what was written. All functions throw Error(Fault::runtime) naming the file and the system's
// reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path file);
  // Puts the temporary file into another folder of the same file system: some programs read every name of a folder.
  AtomicFile(std::filesystem::path file, const std::filesystem::path& temporary_in);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);  // behind what was written so far
  // At any place, also beyond the end; what lies between is 0.
  void write_at(std::string_view bytes, std::int64_t offset);
  // before_rename: what must hold then, long after the first byte; what it throws leaves the old file.
  void commit(const std::function<void()>& before_rename = {});
  // The same without a wait for the disk: after a power cut the file may be the old one, the new one or empty.
  void commit_unsynced();
  [[nodiscard]] std::int64_t size() const { return size_; }

 private:
  [[noreturn]] void give_up(const char* doing);

  std::filesystem::path file_, temporary_;  // temporary_ is empty after commit() or a failure
  Descriptor descriptor_;
  std::int64_t size_ = 0;
};

// The final name of a temporary file: "heads.parquet" for ".heads.parquet.1234.0.tmp". Nothing for any other name.
std::optional<std::string_view> name_of_temporary(std::string_view name);

// Removes what killed processes left of this file under temporary names; a file that another process writes now is
// locked and stays. For files outside a run: what is left in a run goes when it is resumed or replaced.
void remove_leftovers(const std::filesystem::path& file);

// Throws Error(Fault::runtime) naming the file and the system's reason.
void write_file(const std::filesystem::path& file, std::string_view content);

// The same by commit_unsynced, for what is replaced every second and is not missed when it is lost.
void replace_file(const std::filesystem::path& file, std::string_view content);

// More than any text of ours has: state, configuration, conditions, a manifest.
inline constexpr std::size_t most_text_bytes = std::size_t{256} << 20;

// The whole content. Throws Error(Fault::input) naming the file when it cannot be read, is not a regular file, or has
// more than `most` bytes: then nothing of it is read.
std::string read_file(const std::filesystem::path& file, std::size_t most = std::numeric_limits<std::size_t>::max());

// Makes the folder and the folders above it. Throws Error(Fault::runtime).
void make_folder(const std::filesystem::path& folder);

// Throws Error(Fault::runtime).
void rename_to(const std::filesystem::path& from, const std::filesystem::path& to);

// Makes new, removed and renamed names in the folder survive a power failure. A failure is ignored.
void sync_folder(const std::filesystem::path& folder);

}  // namespace headscope
