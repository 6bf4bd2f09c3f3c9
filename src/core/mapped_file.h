// A file's bytes without reading them first: pages come from the disk, or from the page cache, when they are touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <utility>

namespace headscope {

// Read-only. If a program makes the file shorter while it is mapped, this program gets SIGBUS: replace files by
// renaming.
class MappedFile {
 public:
  // Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file.
  explicit MappedFile(const std::filesystem::path& file);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile();

  // They start at the beginning of a page. Moving the object does not move them.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace headscope
