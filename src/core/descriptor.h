// An open file descriptor that closes itself.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace headscope {

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

}  // namespace headscope
