#include "formats/journal.h"

#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/regular_file.h"

namespace headscope {
namespace {

// Before each record: its length and the XXH3 of its bytes, both little-endian.
struct RecordHeader {
  std::uint64_t length;
  std::uint64_t hash;
};

RecordHeader header_of(std::string_view record) {
  return {record.size(), XXH3_64bits(record.data(), record.size())};
}

std::string content_of(const std::filesystem::path& file, const Descriptor& opened) {
  std::string content;
  char piece[1 << 16];
  for (;;) {
    const ssize_t got = ::read(opened.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading(file, errno);
    if (got == 0) return content;
    content.append(piece, static_cast<std::size_t>(got));
  }
}

}  // namespace

JournalContent parse_journal(std::string_view bytes) {
  JournalContent content;
  for (;;) {
    RecordHeader header{};
    const std::string_view rest = bytes.substr(content.length);
    if (rest.size() < sizeof header) return content;
    std::memcpy(&header, rest.data(), sizeof header);
    if (header.length > rest.size() - sizeof header) return content;
    const std::string_view record = rest.substr(sizeof header, header.length);
    if (header_of(record).hash != header.hash) return content;
    content.records.emplace_back(record);
    content.length += sizeof header + record.size();
  }
}

Journal::Journal(std::filesystem::path file) : file_(std::move(file)) {
  descriptor_ = open_or_create(file_);
  if (!descriptor_.open()) fail_runtime("cannot write {}: {}", file_.string(), std::strerror(errno));
  JournalContent content = parse_journal(content_of(file_, descriptor_));
  records_ = std::move(content.records);
  end_ = static_cast<std::int64_t>(content.length);
  if (::ftruncate(descriptor_.get(), end_) != 0)
    fail_runtime("cannot write {}: {}", file_.string(), std::strerror(errno));
}

void Journal::append(std::string_view record) {
  const RecordHeader header = header_of(record);
  std::string bytes(sizeof header, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes += record;

  const std::scoped_lock lock(mutex_);
  if (!descriptor_.write_at(bytes, end_)) {
    const int reason = errno;
    // If this fails, too: a torn record is recognised when it is read.
    [[maybe_unused]] const int cut = ::ftruncate(descriptor_.get(), end_);
    fail_runtime("cannot write {}: {}; finished work is kept, go on with --resume", file_.string(),
                 std::strerror(reason));
  }
  end_ += static_cast<std::int64_t>(bytes.size());
}

}  // namespace headscope
