// Regular files: the one way to open a file that a user names, for reading, and one of our own, for writing in place.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace headscope {

// An open file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int get() const { return value_; }
  [[nodiscard]] bool open() const { return value_ >= 0; }
  // close() reports write errors that some file systems delay until then.
  [[nodiscard]] bool close() { return ::close(std::exchange(value_, -1)) == 0; }

  // Gives the descriptor to the caller, who closes it.
  [[nodiscard]] int release() { return std::exchange(value_, -1); }

  // Fills `out` from `offset` on and returns how many bytes there were. Nothing, with errno set, when that fails.
  [[nodiscard]] std::optional<std::size_t> read_at(std::span<std::byte> out, off_t offset) const {
    std::size_t filled = 0;
    while (filled < out.size()) {
      const ssize_t got =
          ::pread(value_, out.data() + filled, out.size() - filled, offset + static_cast<off_t>(filled));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return std::nullopt;
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
    }
    return filled;
  }

  // Writes all of `content` at `offset`. False, with errno set, when that fails.
  [[nodiscard]] bool write_at(std::string_view content, off_t offset) const {
    while (!content.empty()) {
      const ssize_t written = ::pwrite(value_, content.data(), content.size(), offset);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      content.remove_prefix(static_cast<std::size_t>(written));
      offset += written;
    }
    return true;
  }

 private:
  int value_;
};

// The name still leads to the file that is open here: it may have been moved away, and another one may have its name.
// True where that cannot be seen.
bool is_named(const Descriptor& opened, const std::filesystem::path& file);

// A regular file that is open.
struct RegularFile {
  std::filesystem::path path;
  Descriptor descriptor;
  std::size_t size = 0;  // bytes, when it was opened

  // Fills `out` with the first bytes of the file and returns how many there were: fewer than out.size() only where the
  // file is shorter. Throws Error(Fault::input) naming the file.
  std::size_t read(std::span<std::byte> out) const;
};

// Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file. Never waits, not even for
// a named pipe without a writer.
RegularFile open_regular_file(const std::filesystem::path& file);

// The same error, for a reason that shows later (an errno; 0: not a regular file).
[[noreturn]] void fail_reading(const std::filesystem::path& file, int reason);

// For reading and writing in place; makes an empty file where there is none. Throws Error(Fault::input) when a symbolic
// link or something else than a regular file has the name; never waits. For any other reason its descriptor is not
// open, and errno says why.
RegularFile open_or_create(const std::filesystem::path& file);

// A file's bytes without reading them first: pages come from the disk, or from the page cache, when they are touched.
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

  // Gives the pages back to the system; they come again when they are touched.
  void forget() const;

  // They start at the beginning of a page. Moving the object does not move them.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace headscope
