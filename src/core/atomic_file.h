// The one way to write a file: to a temporary name in the same folder, synced, checked on close, renamed. A reader sees
// the old content or the new, never a part; a full disk leaves the old file as it was.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/descriptor.h"

namespace headscope {

// A file that is written bit by bit. Every member throws Error(Fault::runtime) naming the file and the system's reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path file);
  ~AtomicFile();  // without commit() nothing was changed
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(std::string_view content);
  void commit();

 private:
  [[noreturn]] void give_up(const char* doing);

  std::filesystem::path file_, temporary_;
  Descriptor descriptor_;
  off_t size_ = 0;
};

// The same for content that is there at once.
void write_file(const std::filesystem::path& file, std::string_view content);

// The whole content. Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file.
std::string read_file(const std::filesystem::path& file);

}  // namespace headscope
