// The one way to write a file: to a temporary name in the same folder, synced, checked on close, renamed. A reader sees
// the old content or the new, never a part; a full disk leaves the old file as it was.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "core/descriptor.h"

namespace headscope {

// A file that is too large for one string: written piece by piece, there after commit(). Without commit() nothing is
// left behind. All throw Error(Fault::runtime) naming the file and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path file);
  // The temporary name in another folder of the same file system, for a folder whose every name is read.
  AtomicFile(std::filesystem::path file, const std::filesystem::path& temporary_in);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes);
  void commit();
  [[nodiscard]] std::int64_t size() const { return size_; }  // bytes written so far

 private:
  [[noreturn]] void give_up(const char* doing);

  std::filesystem::path file_, temporary_;  // no temporary name: committed, or given up
  Descriptor descriptor_;
  std::int64_t size_ = 0;
};

// "heads.parquet", the file that ".heads.parquet.1234.0.tmp" was to become; none for any other name.
std::optional<std::string_view> name_of_temporary(std::string_view name);

// Throws Error(Fault::runtime) naming the file and the system's reason.
void write_file(const std::filesystem::path& file, std::string_view content);

// The whole content. Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file.
std::string read_file(const std::filesystem::path& file);

// With the folders above it. Throws Error(Fault::runtime).
void make_folder(const std::filesystem::path& folder);

// Throws Error(Fault::runtime).
void rename_to(const std::filesystem::path& from, const std::filesystem::path& to);

// Names that were made, removed or renamed in a folder are durable only once the folder is.
void sync_folder(const std::filesystem::path& folder);

}  // namespace headscope
