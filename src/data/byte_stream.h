// The bytes of a file in order, unpacked where the name ends in .gz or .zst.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace headscope {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills the front of `out` and returns how much; 0 at the end. Throws Error(Fault::input) naming the file when it
  // cannot be read, or when packed data is damaged or cut short.
  virtual std::size_t read(std::span<char> out) = 0;
};

std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& file);

// Lines of a stream, each with its line end; the last may have none.
class LineReader {
 public:
  LineReader(ByteStream& stream, std::string origin);
  // False at the end. Throws Error(Fault::input) at a line that is too long to be one.
  bool next(std::string& line);
  [[nodiscard]] std::size_t number() const { return number_; }  // of the last line, from 1

 private:
  ByteStream& stream_;
  std::string origin_;
  std::string buffer_;
  std::size_t place_ = 0, filled_ = 0;
  std::size_t number_ = 0;
};

// Memory is bounded by the longest document: nothing longer is taken for one.
inline constexpr std::size_t longest_document = std::size_t{1} << 30;

}  // namespace headscope
