#include "data/byte_stream.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/error.h"
#include "core/regular_file.h"

namespace headscope {
namespace {

constexpr std::size_t packed_bytes = 1 << 16;  // read at a time

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(std::filesystem::path file) : file_(std::move(file)), opened_(open_regular_file(file_)) {}

  std::size_t read(std::span<char> out) override {
    for (;;) {
      const ssize_t got = ::read(opened_.descriptor.get(), out.data(), out.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) fail_reading(file_, errno);
    }
  }

 private:
  std::filesystem::path file_;
  RegularFile opened_;
};

// Packed bytes of a file, some at a time.
class PackedInput {
 public:
  explicit PackedInput(const std::filesystem::path& file) : origin_(file.string()), file_(file), bytes_(packed_bytes) {}
  // False at the end of the file.
  bool refill() {
    count_ = file_.read(bytes_);
    return count_ > 0;
  }
  [[nodiscard]] std::span<char> filled() { return std::span(bytes_).first(count_); }

  [[noreturn]] void fail_short() const {
    fail_input("{}: the packed data is cut short; copy or write the file again", origin_);
  }
  [[noreturn]] void fail_damaged(std::string_view reason) const {
    fail_input("{}: the packed data is damaged ({}); copy or write the file again", origin_, reason);
  }

 private:
  std::string origin_;
  PlainStream file_;
  std::vector<char> bytes_;
  std::size_t count_ = 0;
};

// gzip, any number of members one after another.
class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(const std::filesystem::path& file) : input_(file) {
    constexpr int gzip_window = 15 + 16;  // the largest window; a gzip header is required
    HEADSCOPE_CHECK(::inflateInit2(&state_, gzip_window) == Z_OK, "zlib {}", ::zlibVersion());
  }
  ~GzipStream() override { ::inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::size_t read(std::span<char> out) override {
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    state_.avail_out = static_cast<uInt>(out.size());
    while (state_.avail_out == out.size()) {
      if (state_.avail_in == 0 && !refill()) {
        if (!between_members_) input_.fail_short();
        break;
      }
      if (between_members_ && started_) ::inflateReset(&state_);
      between_members_ = false;
      started_ = true;
      const int result = ::inflate(&state_, Z_NO_FLUSH);
      if (result == Z_STREAM_END)
        between_members_ = true;
      else if (result != Z_OK && result != Z_BUF_ERROR)
        input_.fail_damaged(state_.msg != nullptr ? state_.msg : "not gzip");
    }
    return out.size() - state_.avail_out;
  }

 private:
  bool refill() {
    if (!input_.refill()) return false;
    state_.next_in = reinterpret_cast<Bytef*>(input_.filled().data());
    state_.avail_in = static_cast<uInt>(input_.filled().size());
    return true;
  }

  PackedInput input_;
  z_stream state_{};
  bool started_ = false;
  bool between_members_ = false;  // the file may end here
};

// Zstandard, any number of frames one after another. libzstd refuses frames that need more than 128 MiB to unpack.
class ZstdStream final : public ByteStream {
 public:
  explicit ZstdStream(const std::filesystem::path& file) : input_(file), state_(::ZSTD_createDStream()) {
    if (!state_) throw std::bad_alloc();
  }

  std::size_t read(std::span<char> out) override {
    ZSTD_outBuffer target{out.data(), out.size(), 0};
    while (target.pos == 0) {
      // libzstd may still hold text that did not fit before: it is asked before the end of the file counts.
      if (packed_.pos == packed_.size && !pending_ && !refill()) {
        if (!between_frames_) input_.fail_short();
        break;
      }
      const std::size_t result = ::ZSTD_decompressStream(state_.get(), &target, &packed_);
      if (::ZSTD_isError(result) != 0) input_.fail_damaged(::ZSTD_getErrorName(result));
      between_frames_ = result == 0;
      pending_ = target.pos == target.size && !between_frames_;
    }
    return target.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* state) const { ::ZSTD_freeDStream(state); }
  };

  bool refill() {
    if (!input_.refill()) return false;
    packed_ = {input_.filled().data(), input_.filled().size(), 0};
    return true;
  }

  PackedInput input_;
  std::unique_ptr<ZSTD_DStream, Free> state_;
  ZSTD_inBuffer packed_{nullptr, 0, 0};
  bool between_frames_ = false;  // the file may end here
  bool pending_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& file) {
  if (file.extension() == ".gz") return std::make_unique<GzipStream>(file);
  if (file.extension() == ".zst") return std::make_unique<ZstdStream>(file);
  return std::make_unique<PlainStream>(file);
}

LineReader::LineReader(ByteStream& stream, std::string origin)
    : stream_(stream), origin_(std::move(origin)), buffer_(1 << 18, '\0') {}

bool LineReader::next(std::string& line) {
  line.clear();
  ++number_;
  for (;;) {
    if (place_ == filled_) {
      place_ = 0;
      filled_ = stream_.read(buffer_);
      if (filled_ == 0) return !line.empty();
    }
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
