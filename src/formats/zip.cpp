#include "formats/zip.h"

#include <zlib.h>

#include <limits>

#include "core/error.h"
#include "formats/byte_reader.h"

namespace headscope {
namespace {

// Signatures of the records, and their sizes without names and extra fields.
constexpr std::uint32_t local_signature = 0x04034b50, entry_signature = 0x02014b50, end_signature = 0x06054b50,
                        end64_signature = 0x06064b50, locator_signature = 0x07064b50;
constexpr std::size_t local_size = 30, entry_size = 46, end_size = 22, locator_size = 20;
constexpr std::uint16_t stored_method = 0, deflated_method = 8, encrypted_flag = 1, utf8_flag = 0x800, zip64_field = 1;
// Instead of a number that stands in a 64-bit field.
constexpr std::uint32_t see_zip64 = 0xffffffff;
constexpr std::uint16_t see_zip64_short = 0xffff;
// Two bits of deflated data give 258 bytes at most.
constexpr std::uint64_t most_deflation = 1032;
// zlib counts the bytes of one call in 32 bits.
constexpr std::size_t zlib_piece = std::size_t{1} << 30;

[[noreturn]] void fail_zip(const std::string& origin, std::string_view what) {
  fail_input("{}: damaged or not a zip archive (.npz): {}; copy or write the file again", origin, what);
}

struct ZipDirectory {
  std::uint64_t offset = 0, size = 0, members = 0;
};

// The record at the end may have a comment behind it.
std::size_t end_record(std::span<const std::byte> bytes, const std::string& origin) {
  constexpr std::size_t longest_comment = 65'535;
  if (bytes.size() < end_size) fail_zip(origin, fmt::format("it has {} bytes", bytes.size()));
  const std::size_t last = bytes.size() - end_size, first = last > longest_comment ? last - longest_comment : 0;
  for (std::size_t place = last + 1; place-- > first;) {
    ByteReader reader(bytes.subspan(place), origin);
    if (reader.number<std::uint32_t>("the end record") != end_signature) continue;
    reader.take(end_size - 6, "the end record");
    if (reader.number<std::uint16_t>("the end record") == reader.left()) return place;
  }
  fail_zip(origin, "it has no directory at its end");
}

ZipDirectory directory_of(std::span<const std::byte> bytes, const std::string& origin) {
  const std::size_t end = end_record(bytes, origin);
  ByteReader reader(bytes.subspan(end), origin);
  reader.take(4, "the end record");
  const auto disk = reader.number<std::uint16_t>("the end record"),
             directory_disk = reader.number<std::uint16_t>("the end record"),
             members_here = reader.number<std::uint16_t>("the end record"),
             members = reader.number<std::uint16_t>("the end record");
  const auto size = reader.number<std::uint32_t>("the end record"),
             offset = reader.number<std::uint32_t>("the end record");
  if (disk != directory_disk || members_here != members) fail_zip(origin, "it is one of several parts");
  ZipDirectory directory{offset, size, members};
  std::size_t limit = end;  // the directory ends before
  // Numbers that do not fit stand in a 64-bit record, which a locator before the end record points at.
  const auto before_end = bytes.first(end).last(std::min(end, locator_size));
  ByteReader locator(before_end, origin);
  if ((members == see_zip64_short || size == see_zip64 || offset == see_zip64) && before_end.size() == locator_size &&
      locator.number<std::uint32_t>("the locator") == locator_signature) {
    locator.take(4, "the locator");
    const auto place = locator.number<std::uint64_t>("the locator");
    if (place > end - locator_size) fail_zip(origin, fmt::format("its 64-bit record is said to be at byte {}", place));
    ByteReader record(bytes.subspan(place, end - locator_size - place), origin);
    if (record.number<std::uint32_t>("the 64-bit end record") != end64_signature)
      fail_zip(origin, fmt::format("there is no 64-bit record at byte {}", place));
    record.take(8 + 2 + 2 + 4 + 4 + 8, "the 64-bit end record");
    directory.members = record.number<std::uint64_t>("the 64-bit end record");
    directory.size = record.number<std::uint64_t>("the 64-bit end record");
    directory.offset = record.number<std::uint64_t>("the 64-bit end record");
    limit = place;
  }
  if (directory.offset > limit || directory.size > limit - directory.offset)
    fail_zip(origin,
             fmt::format("its directory of {} bytes is said to be at byte {}", directory.size, directory.offset));
  if (directory.members > directory.size / entry_size)
    fail_zip(origin, fmt::format("it claims {} members in a directory of {} bytes", directory.members, directory.size));
  return directory;
}

// An entry of the directory. `offset`: of the local record, which precedes the member's bytes.
struct ZipEntry {
  ZipMember member;
  std::uint64_t packed_size = 0, offset = 0;
};

// The numbers that stand in the 64-bit field, in this order.
void read_zip64_field(ZipEntry& entry, std::span<const std::byte> extra, const std::string& origin) {
  ByteReader fields(extra, origin);
  while (fields.left() >= 4) {
    const auto kind = fields.number<std::uint16_t>("an extra field");
    const auto length = fields.number<std::uint16_t>("an extra field");
    ByteReader field(fields.take(length, "an extra field"), origin);
    if (kind != zip64_field) continue;
    for (std::uint64_t* number : {&entry.member.size, &entry.packed_size, &entry.offset})
      if (*number == see_zip64) *number = field.number<std::uint64_t>("a 64-bit size");
    return;
  }
}

ZipEntry read_entry(ByteReader& reader, const std::string& origin) {
  constexpr std::string_view what = "an entry of the directory";
  if (reader.number<std::uint32_t>(what) != entry_signature)
    fail_zip(origin, "its directory has no entry where it should");
  reader.take(4, what);
  const auto flags = reader.number<std::uint16_t>(what), method = reader.number<std::uint16_t>(what);
  reader.take(4, what);
  ZipEntry entry;
  entry.member.checksum = reader.number<std::uint32_t>(what);
  entry.packed_size = reader.number<std::uint32_t>(what);
  entry.member.size = reader.number<std::uint32_t>(what);
  const auto name_length = reader.number<std::uint16_t>(what), extra_length = reader.number<std::uint16_t>(what),
             comment_length = reader.number<std::uint16_t>(what);
  reader.take(8, what);
  entry.offset = reader.number<std::uint32_t>(what);
  entry.member.name = text_of(reader.take(name_length, "a name"));
  read_zip64_field(entry, reader.take(extra_length, "an extra field"), origin);
  reader.take(comment_length, "a comment");
  if ((flags & encrypted_flag) != 0) fail_input("{}: '{}' is encrypted", origin, excerpt(entry.member.name));
  if (method != stored_method && method != deflated_method)
    fail_input("{}: '{}' is packed by method {}; known are 0 (stored) and 8 (deflated)", origin,
               excerpt(entry.member.name), method);
  entry.member.deflated = method == deflated_method;
  return entry;
}

// Finds the member's bytes behind its local record, and returns the place where they end.
std::uint64_t find_bytes(ZipEntry& entry, std::span<const std::byte> before_directory, const std::string& origin) {
  const auto fail = [&](const std::string& what) {
    fail_zip(origin, fmt::format("member '{}' {}", excerpt(entry.member.name), what));
  };
  constexpr std::string_view what = "a local record";
  if (entry.offset > before_directory.size()) fail(fmt::format("is said to be at byte {}", entry.offset));
  ByteReader reader(before_directory.subspan(entry.offset), origin);
  if (reader.left() < local_size || reader.number<std::uint32_t>(what) != local_signature)
    fail(fmt::format("is not at byte {}", entry.offset));
  reader.take(22, what);
  const auto name_length = reader.number<std::uint16_t>(what), extra_length = reader.number<std::uint16_t>(what);
  if (text_of(reader.take(name_length, what)) != entry.member.name) fail("has another name at its place");
  reader.take(extra_length, what);
  entry.member.packed = reader.take(entry.packed_size, fmt::format("member '{}'", excerpt(entry.member.name)));
  if (!entry.member.deflated && entry.packed_size != entry.member.size)
    fail(fmt::format("is stored in {} bytes and claims {}", entry.packed_size, entry.member.size));
  if (entry.member.deflated && entry.member.size / most_deflation > entry.packed_size)
    fail(fmt::format("claims {} bytes, more than {} packed bytes can give", entry.member.size, entry.packed_size));
  return entry.offset + reader.position();
}

template <class Number>
void put(std::string& out, Number value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

constexpr std::uint16_t zip64_version = 45;
constexpr std::uint16_t first_date = 0x21;  // 1980-01-01: the same arrays give the same file

// From the version to the length of the extra field, which local records and entries have in common. The sizes stand in
// the 64-bit field, so that one layout serves members of any size.
void put_common(std::string& out, const std::string& name, bool deflated, std::uint32_t checksum, std::uint16_t extra) {
  put(out, zip64_version);
  put(out, utf8_flag);
  put(out, deflated ? deflated_method : stored_method);
  put(out, std::uint16_t{0});
  put(out, first_date);
  put(out, checksum);
  put(out, see_zip64);
  put(out, see_zip64);
  put(out, static_cast<std::uint16_t>(name.size()));
  put(out, extra);
}

std::string deflated_bytes(std::initializer_list<std::span<const std::byte>> parts) {
  z_stream stream{};
  HEADSCOPE_CHECK(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
                  "deflateInit2");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  std::string packed;
  std::vector<std::byte> buffer(std::size_t{1} << 18);
  const auto pump = [&](int flush) {
    int status = Z_OK;
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      status = deflate(&stream, flush);
      packed += text_of(std::span(buffer).first(buffer.size() - stream.avail_out));
    } while (stream.avail_out == 0 || (flush == Z_FINISH && status != Z_STREAM_END));
  };
  for (std::span<const std::byte> part : parts) {
    while (!part.empty()) {
      const auto piece = part.first(std::min(part.size(), zlib_piece));
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));  // zlib does not write there
      stream.avail_in = static_cast<uInt>(piece.size());
      pump(Z_NO_FLUSH);
      part = part.subspan(piece.size());
    }
  }
  pump(Z_FINISH);
  return packed;
}

std::uint32_t checksum_of(std::uint32_t before, std::span<const std::byte> bytes) {
  if (bytes.empty()) return before;
  return static_cast<std::uint32_t>(crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

std::vector<ZipMember> parse_zip(std::span<const std::byte> bytes, const std::string& origin) {
  const ZipDirectory directory = directory_of(bytes, origin);
  ByteReader reader(bytes.subspan(directory.offset, directory.size), origin);
  struct Range {
    std::uint64_t begin, end;
    std::size_t member;
  };
  std::vector<ZipMember> members;
  std::vector<Range> ranges;
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    ZipEntry entry = read_entry(reader, origin);
    const std::uint64_t end = find_bytes(entry, bytes.first(directory.offset), origin);
    ranges.push_back({entry.offset, end, members.size()});
    members.push_back(std::move(entry.member));
  }
  if (reader.left() != 0)
    fail_zip(origin, fmt::format("{} bytes follow the last entry of its directory", reader.left()));
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      fail_zip(origin, fmt::format("the members '{}' and '{}' overlap", excerpt(members[ranges[i - 1].member].name),
                                   excerpt(members[ranges[i].member].name)));
  return members;
}

struct ZipStream::Inflater {
  z_stream stream{};
  std::span<const std::byte> left;  // not yet given to zlib
  bool ended = false;

  void refill() {
    if (stream.avail_in != 0) return;
    const auto piece = left.first(std::min(left.size(), zlib_piece));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(piece.data()));  // zlib does not write there
    stream.avail_in = static_cast<uInt>(piece.size());
    left = left.subspan(piece.size());
  }
};

ZipStream::ZipStream(const ZipMember& member, std::string where) : member_(member), where_(std::move(where)) {
  if (!member.deflated) return;
  inflater_ = std::make_unique<Inflater>();
  inflater_->left = member.packed;
  HEADSCOPE_CHECK(inflateInit2(&inflater_->stream, -MAX_WBITS) == Z_OK, "inflateInit2");
}

ZipStream::~ZipStream() {
  if (inflater_) inflateEnd(&inflater_->stream);
}

void ZipStream::read(std::span<std::byte> out) {
  if (out.empty()) return;
  if (inflater_) {
    read_deflated(out);
  } else {
    const auto left = member_.packed.subspan(position_);
    if (out.size() > left.size())
      fail_input("{}: ends after {} bytes; {} more are expected", where_, member_.packed.size(),
                 out.size() - left.size());
    std::memcpy(out.data(), left.data(), out.size());
    position_ += out.size();
  }
  checksum_ = checksum_of(checksum_, out);
}

void ZipStream::read_deflated(std::span<std::byte> out) {
  z_stream& stream = inflater_->stream;
  while (!out.empty()) {
    if (inflater_->ended) fail_input("{}: ends {} bytes too early", where_, out.size());
    inflater_->refill();
    const std::size_t wanted = std::min(out.size(), zlib_piece);
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(wanted);
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END)
      fail_input("{}: its packed bytes are damaged or cut short; copy or write the file again", where_);
    inflater_->ended = status == Z_STREAM_END;
    out = out.subspan(wanted - stream.avail_out);
  }
}

void ZipStream::finish() {
  bool at_end = position_ == member_.packed.size();
  if (inflater_) {
    // The end of the stream may stand behind the last byte.
    if (!inflater_->ended) {
      inflater_->refill();
      Bytef more = 0;
      inflater_->stream.next_out = &more;
      inflater_->stream.avail_out = 1;
      inflater_->ended = inflate(&inflater_->stream, Z_NO_FLUSH) == Z_STREAM_END && inflater_->stream.avail_out == 1;
    }
    at_end = inflater_->ended && inflater_->stream.avail_in == 0 && inflater_->left.empty();
  }
  if (!at_end) fail_input("{}: has more bytes than its shape needs; copy or write the file again", where_);
  if (checksum_ != member_.checksum)
    fail_input("{}: its bytes have the checksum {:08x}; the archive says {:08x}; copy or write the file again", where_,
               checksum_, member_.checksum);
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> body,
                    bool deflated) {
  HEADSCOPE_CHECK(!name.empty() && name.size() < see_zip64_short, "a name of {} bytes", name.size());
  const auto offset = static_cast<std::uint64_t>(out_.size());
  const std::uint64_t size = head.size() + body.size();
  const std::uint32_t checksum = checksum_of(checksum_of(0, head), body);
  const std::string packed = deflated ? deflated_bytes({head, body}) : std::string();
  const std::uint64_t packed_size = deflated ? packed.size() : size;

  std::string local;
  put(local, local_signature);
  put_common(local, name, deflated, checksum, 4 + 16);
  local += name;
  put(local, zip64_field);
  put(local, std::uint16_t{16});
  put(local, size);
  put(local, packed_size);
  out_.write(local);
  if (deflated) {
    out_.write(packed);
  } else {
    out_.write(text_of(head));
    out_.write(text_of(body));
  }

  put(directory_, entry_signature);
  put(directory_, zip64_version);
  put_common(directory_, name, deflated, checksum, 4 + 24);
  directory_.append(2 + 2 + 2 + 4, '\0');  // no comment, first part, no attributes
  put(directory_, see_zip64);
  directory_ += name;
  put(directory_, zip64_field);
  put(directory_, std::uint16_t{24});
  put(directory_, size);
  put(directory_, packed_size);
  put(directory_, offset);
  ++members_;
}

void ZipWriter::commit() {
  const auto offset = static_cast<std::uint64_t>(out_.size());
  std::string end;
  put(end, end64_signature);
  put(end, std::uint64_t{2 + 2 + 4 + 4 + 8 + 8 + 8 + 8});
  put(end, zip64_version);
  put(end, zip64_version);
  put(end, std::uint64_t{0});  // one part
  put(end, members_);
  put(end, members_);
  put(end, std::uint64_t{directory_.size()});
  put(end, offset);
  put(end, locator_signature);
  put(end, std::uint32_t{0});
  put(end, offset + directory_.size());
  put(end, std::uint32_t{1});
  put(end, end_signature);
  put(end, std::uint32_t{0});
  put(end, see_zip64_short);
  put(end, see_zip64_short);
  put(end, see_zip64);
  put(end, see_zip64);
  put(end, std::uint16_t{0});
  out_.write(directory_);
  out_.write(end);
  out_.commit();
}

}  // namespace headscope
