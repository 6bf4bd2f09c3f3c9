// A file mapped into memory, read-only.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace headscope {

class MappedFile {
 public:
  // Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file.
  explicit MappedFile(const std::filesystem::path& file);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace headscope
