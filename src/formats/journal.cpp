#include "formats/journal.h"

#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "core/error.h"

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
  RegularFile opened = open_or_create(file_);
  if (!opened.descriptor.open()) fail_runtime("cannot write {}: {}", file_.string(), std::strerror(errno));
  std::string bytes(opened.size, '\0');
  bytes.resize(opened.read(std::as_writable_bytes(std::span(bytes))));
  JournalContent content = parse_journal(bytes);
  descriptor_ = std::move(opened.descriptor);
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
