// Texts of files: the lines of a text file, unpacked where its name ends in .gz or .zst, and one column of texts of a
// Parquet file, such as `text` in published corpora.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace arrow::io {
class InputStream;
}

namespace headscope {

// Memory is bounded by the longest document: a longer one is refused.
inline constexpr std::size_t longest_document = std::size_t{1} << 30;

// A packed file may hold several gzip members or zstd frames, one after another. zstd frames that need more than 128
// MiB to unpack are refused.
class LineReader {
 public:
  // Throws Error(Fault::input) naming the file when it cannot be read or is not a regular file.
  explicit LineReader(const std::filesystem::path& file);
  ~LineReader();

  // The next line with its line end; the last may have none. False at the end of the file. Throws Error(Fault::input)
  // naming the file when it cannot be read, when packed data is damaged or cut short, and when a line is longer than
  // longest_document.
  bool next(std::string& line);
  [[nodiscard]] std::size_t number() const { return number_; }  // of the last line, from 1

 private:
  void refill();

  std::string origin_;
  std::shared_ptr<arrow::io::InputStream> input_;
  std::string buffer_;
  std::size_t place_ = 0, filled_ = 0;
  std::size_t number_ = 0;
};

// Calls `on_text` with each row's text, in order, until it returns false; then returns false. Memory holds a few pages.
// Throws Error(Fault::input) naming the file, and the column or row, when the column is not there or is not text, a row
// is null, the file is damaged, or the texts are longer than a file of its size can mean (arrow_input.h).
bool for_each_text(const std::filesystem::path& file, const std::string& column,
                   const std::function<bool(std::string_view)>& on_text);

// The same for a file that is in memory already; `origin` is how errors name it.
bool for_each_text(std::span<const std::byte> bytes, const std::string& origin, const std::string& column,
                   const std::function<bool(std::string_view)>& on_text);

}  // namespace headscope
