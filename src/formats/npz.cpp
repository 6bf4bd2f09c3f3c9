#include "formats/npz.h"

#include <set>

#include "core/config.h"
#include "core/error.h"
#include "formats/byte_reader.h"
#include "formats/npy_header.h"

namespace headscope {
namespace {

constexpr std::string_view npy_ending = ".npy";

std::string array_place(const std::string& origin, std::string_view name) {
  return fmt::format("{}: array '{}'", origin, excerpt(name));
}

void reverse_bytes(std::vector<std::byte>& bytes, std::size_t value_size) {
  for (auto value = bytes.begin(); value != bytes.end(); value += static_cast<std::ptrdiff_t>(value_size))
    std::reverse(value, value + static_cast<std::ptrdiff_t>(value_size));
}

// From the order in which the first index runs fastest to the one in which the last does.
std::vector<std::byte> to_row_order(const std::vector<std::byte>& columns, const std::vector<std::int64_t>& shape,
                                    std::size_t value_size) {
  std::vector<std::size_t> strides(shape.size());  // in `columns`, bytes
  std::size_t stride = value_size;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    strides[i] = stride;
    stride *= static_cast<std::size_t>(shape[i]);
  }
  std::vector<std::byte> rows(columns.size());
  std::vector<std::int64_t> index(shape.size(), 0);
  std::size_t from = 0;
  for (std::size_t to = 0; to < rows.size(); to += value_size) {
    std::copy_n(columns.begin() + static_cast<std::ptrdiff_t>(from), value_size,
                rows.begin() + static_cast<std::ptrdiff_t>(to));
    for (std::size_t i = shape.size(); i-- > 0;) {
      from += strides[i];
      if (++index[i] < shape[i]) break;
      from -= strides[i] * static_cast<std::size_t>(shape[i]);
      index[i] = 0;
    }
  }
  return rows;
}

// `size`: of the whole .npy file.
NumpyArray read_array(ZipStream& stream, std::uint64_t size, std::string name, const std::string& where) {
  std::string text(npy_shortest_preamble, '\0');
  const auto read_more = [&](std::size_t count) {
    text.resize(text.size() + count);
    stream.read(std::as_writable_bytes(std::span(text)).last(count));
  };
  if (size < npy_shortest_preamble) fail_input("{}: {} bytes are too few for an array (.npy)", where, size);
  stream.read(std::as_writable_bytes(std::span(text)));
  auto preamble = parse_npy_preamble(text, where);
  if (!preamble) {
    read_more(npy_longest_preamble - npy_shortest_preamble);
    preamble = parse_npy_preamble(text, where);
  }
  read_more(preamble->length);
  const NpyHeader header = parse_npy_dictionary(std::string_view(text).substr(preamble->size), where);
  const auto needed = byte_size(header.type, header.shape);
  if (!needed || size < text.size() || *needed != size - text.size())
    fail_input("{}: its shape {} of {} does not fit {} bytes behind its header of {}; copy or write the file again",
               where, shape_text(header.shape), type_name(header.type),
               size - std::min<std::uint64_t>(size, text.size()), text.size());
  NumpyArray array{std::move(name), header.type, header.shape, std::vector<std::byte>(*needed)};
  stream.read(array.bytes);
  const std::size_t value_size = bytes_per_block(header.type);
  if (header.big_endian) reverse_bytes(array.bytes, value_size);
  if (header.fortran_order && header.shape.size() > 1)
    array.bytes = to_row_order(array.bytes, header.shape, value_size);
  return array;
}

}  // namespace

NumpyArray parse_npy(std::span<const std::byte> bytes, std::string name, const std::string& origin) {
  const ZipMember whole{name, false, bytes, bytes.size(), 0};
  ZipStream stream(whole, origin);
  return read_array(stream, bytes.size(), std::move(name), origin);  // it reads to the end: the sizes agree
}

std::vector<ZipMember> parse_npz(std::span<const std::byte> bytes, const std::string& origin) {
  std::vector<ZipMember> members = parse_zip(bytes, origin);
  std::set<std::string_view> names;
  for (ZipMember& member : members) {
    if (member.name.ends_with(npy_ending)) member.name.resize(member.name.size() - npy_ending.size());
    if (!names.insert(member.name).second) fail_input("{}: array '{}' comes twice", origin, excerpt(member.name));
  }
  return members;
}

NumpyArray unpack_array(const ZipMember& member, const std::string& origin) {
  const std::string where = array_place(origin, member.name);
  ZipStream stream(member, where);
  NumpyArray array = read_array(stream, member.size, member.name, where);
  stream.finish();
  return array;
}

Npz::Npz(std::filesystem::path file)
    : path_(std::move(file)), file_(path_), members_(parse_npz(file_.bytes(), path_.string())) {
  for (std::size_t i = 0; i < members_.size(); ++i) places_.emplace(members_[i].name, i);
}

std::vector<std::string> Npz::names() const {
  std::vector<std::string> names;
  for (const ZipMember& member : members_) names.push_back(member.name);
  return names;
}

NumpyArray Npz::get(std::string_view name) const {
  const auto place = places_.find(name);
  if (place != places_.end()) return unpack_array(members_[place->second], path_.string());
  const std::string nearest = nearest_name(name, names());
  fail_input("{}: there is no array '{}'{}", path_.string(), excerpt(name),
             nearest.empty() ? "" : fmt::format("; did you mean '{}'?", excerpt(nearest)));
}

void write_npz(const std::filesystem::path& file, std::span<const TensorView> arrays, NpzPacking packing) {
  std::set<std::string_view> names;
  ZipWriter out(file);
  for (const TensorView& array : arrays) {
    HEADSCOPE_CHECK(names.insert(array.name).second, "{}: array '{}' comes twice", file.string(), array.name);
    HEADSCOPE_CHECK(byte_size(array.type, array.shape) == array.bytes.size(), "{}: array '{}' {} of {} has {} bytes",
                    file.string(), array.name, shape_text(array.shape), type_name(array.type), array.bytes.size());
    const std::string header = npy_header_text(array.type, array.shape);
    out.add(array.name + std::string(npy_ending), std::as_bytes(std::span(header)), array.bytes,
            packing == NpzPacking::deflated);
  }
  out.commit();
}

}  // namespace headscope
