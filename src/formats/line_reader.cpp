#include "formats/line_reader.h"

#include <arrow/io/compressed.h>
#include <arrow/util/compression.h>

#include "core/error.h"
#include "formats/arrow_input.h"

namespace headscope {
namespace {

[[noreturn]] void fail_short(const std::string& origin) {
  fail_input("{}: the packed data is cut short; copy or write the file again", origin);
}

std::shared_ptr<arrow::io::InputStream> open_lines(const std::filesystem::path& file) {
  ArrowInput input = open_input(file, *arrow::default_memory_pool());
  const bool gzip = file.extension() == ".gz";
  if (!gzip && file.extension() != ".zst") return input.file;
  if (input.size == 0) fail_short(file.string());  // Arrow takes it for a file of no members
  const auto codec = value_of(arrow::util::Codec::Create(gzip ? arrow::Compression::GZIP : arrow::Compression::ZSTD));
  return value_of(arrow::io::CompressedInputStream::Make(codec.get(), input.file));
}

[[noreturn]] void fail(const std::string& origin, const arrow::Status& status) {
  if (status.detail()) fail_input("cannot read {}: {}", origin, status.detail()->ToString());  // of the system
  if (status.message() == "Truncated compressed stream") fail_short(origin);
  std::string_view reason = status.message();  // "zlib inflate failed: incorrect data check"
  reason.remove_prefix(std::min(reason.find(": ") + 2, reason.size()));
  fail_input("{}: the packed data is damaged ({}); copy or write the file again", origin, reason);
}

}  // namespace

LineReader::LineReader(const std::filesystem::path& file)
    : origin_(file.string()), input_(open_lines(file)), buffer_(1 << 18, '\0') {}

LineReader::~LineReader() = default;

void LineReader::refill() {
  const auto got = input_->Read(static_cast<std::int64_t>(buffer_.size()), buffer_.data());
  if (!got.ok()) fail(origin_, got.status());
  filled_ = static_cast<std::size_t>(*got);
  place_ = 0;
}

bool LineReader::next(std::string& line) {
  line.clear();
  ++number_;
  for (;;) {
    if (place_ == filled_) refill();
    if (filled_ == 0) return !line.empty();
    const std::string_view left = std::string_view(buffer_).substr(place_, filled_ - place_);
    const std::size_t end = left.find('\n');
    const std::string_view taken = left.substr(0, end == std::string_view::npos ? left.size() : end + 1);
    if (line.size() + taken.size() > longest_document)
      fail_input("{}: line {} has more than {} bytes; expected shorter documents", origin_, number_, longest_document);
    line += taken;
    place_ += taken.size();
    if (end != std::string_view::npos) return true;
  }
}

}  // namespace headscope
