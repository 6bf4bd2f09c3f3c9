#include "formats/captured_thrift.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace headscope::test {

namespace {

std::uint8_t take_byte(std::string_view& from) {
  if (from.empty()) throw std::runtime_error("thrift: the bytes end");
  const auto byte = static_cast<std::uint8_t>(from.front());
  from.remove_prefix(1);
  return byte;
}

std::uint64_t take_varint(std::string_view& from) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const std::uint64_t byte = take_byte(from);
    value |= (byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  throw std::runtime_error("thrift: a number too long");
}

std::int64_t take_zigzag(std::string_view& from) {
  const std::uint64_t value = take_varint(from);
  return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

std::string take_bytes(std::string_view& from, std::size_t size) {
  if (size > from.size()) throw std::runtime_error("thrift: the bytes end");
  std::string bytes(from.substr(0, size));
  from.remove_prefix(size);
  return bytes;
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_zigzag(std::string& out, std::int64_t value) {
  put_varint(out, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

Thrift take_value(std::string_view& from, int type) {
  Thrift value;
  value.type = type;
  switch (type) {
    case Thrift::yes:
    case Thrift::no:
      break;
    case Thrift::byte:
      value.number = static_cast<std::int8_t>(take_byte(from));
      break;
    case Thrift::i16:
    case Thrift::i32:
    case Thrift::i64:
      value.number = take_zigzag(from);
      break;
    case Thrift::real:
      value.bytes = take_bytes(from, 8);
      break;
    case Thrift::text:
      value.bytes = take_bytes(from, take_varint(from));
      break;
    case Thrift::list: {
      const int header = take_byte(from);
      value.item_type = header & 15;
      std::uint64_t count = static_cast<std::uint64_t>(header >> 4);
      if (count == 15) count = take_varint(from);
      for (std::uint64_t i = 0; i < count; ++i) {
        // Booleans in a list take a byte each.
        if (value.item_type == Thrift::yes || value.item_type == Thrift::no) {
          Thrift item;
          item.type = take_byte(from);
          value.items.push_back(item);
        } else {
          value.items.push_back(take_value(from, value.item_type));
        }
      }
      break;
    }
    case Thrift::object:
      value = Thrift::parse(from);
      break;
    default:
      throw std::runtime_error("thrift: type " + std::to_string(type));
  }
  return value;
}

void put_value(std::string& out, const Thrift& value) {
  switch (value.type) {
    case Thrift::byte:
      out += static_cast<char>(value.number);
      break;
    case Thrift::i16:
    case Thrift::i32:
    case Thrift::i64:
      put_zigzag(out, value.number);
      break;
    case Thrift::real:
      out += value.bytes;
      break;
    case Thrift::text:
      put_varint(out, value.bytes.size());
      out += value.bytes;
      break;
    case Thrift::list:
      if (value.items.size() < 15) {
        out += static_cast<char>((value.items.size() << 4) | static_cast<unsigned>(value.item_type));
      } else {
        out += static_cast<char>(0xf0 | value.item_type);
        put_varint(out, value.items.size());
      }
      for (const auto& item : value.items) {
        if (item.type == Thrift::yes || item.type == Thrift::no) out += static_cast<char>(item.type);
        put_value(out, item);
      }
      break;
    case Thrift::object:
      out += value.serialise();
      break;
    default:
      break;
  }
}

}  // namespace

Thrift Thrift::parse(std::string_view& from) {
  Thrift value;
  int field = 0;
  for (int header = take_byte(from); header != 0; header = take_byte(from)) {
    field = (header >> 4) != 0 ? field + (header >> 4) : static_cast<int>(take_zigzag(from));
    if (field != static_cast<std::int16_t>(field)) throw std::runtime_error("thrift: a field number too large");
    value.fields.push_back({field, take_value(from, header & 15)});
  }
  return value;
}

std::string Thrift::serialise() const {
  std::string out;
  int before = 0;
  for (const auto& [field, value] : fields) {
    const int step = field - before;
    if (step > 0 && step < 16) {
      out += static_cast<char>((step << 4) | value.type);
    } else {
      out += static_cast<char>(value.type);
      put_zigzag(out, field);
    }
    before = field;
    put_value(out, value);
  }
  return out + '\0';
}

Thrift& Thrift::operator[](int field) {
  auto at = fields.begin();
  while (at != fields.end() && at->number < field) ++at;
  if (at == fields.end() || at->number != field) at = fields.insert(at, {field, Thrift{}});
  return at->value;
}

bool Thrift::has(int field) const {
  for (const auto& [known, value] : fields) {
    if (known == field) return true;
  }
  return false;
}

namespace {

std::size_t footer_start(std::string_view file) {
  std::uint32_t size = 0;
  if (file.size() < 8) throw std::runtime_error("no footer");
  std::memcpy(&size, file.data() + file.size() - 8, sizeof(size));
  if (size > file.size() - 8) throw std::runtime_error("no footer");
  return file.size() - 8 - size;
}

std::pair<std::size_t, std::size_t> place_of(Thrift& column) {
  std::int64_t start = column[footer::data_page_offset].number;
  if (column.has(footer::dictionary_page_offset)) {
    start = std::min(start, column[footer::dictionary_page_offset].number);
  }
  return {static_cast<std::size_t>(start), static_cast<std::size_t>(column[footer::compressed_size].number)};
}

}  // namespace

Thrift footer_of(std::string_view file) {
  auto bytes = file.substr(footer_start(file));
  return Thrift::parse(bytes);
}

std::string with_footer(std::string_view file, const Thrift& changed) {
  const std::string bytes = changed.serialise();
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::string out(file.substr(0, footer_start(file)));
  out += bytes;
  out.append(reinterpret_cast<const char*>(&size), sizeof(size));
  return out + "PAR1";
}

std::string with_footer(std::string_view file, const std::function<void(Thrift&)>& change) {
  Thrift tree = footer_of(file);
  change(tree);
  return with_footer(file, tree);
}

Thrift& column_of(Thrift& tree, std::string_view column) {
  constexpr int path_in_schema = 3;
  for (auto& chunk : tree[footer::row_groups].items.at(0)[footer::columns].items) {
    Thrift& meta_data = chunk[footer::meta_data];
    if (meta_data[path_in_schema].items.at(0).bytes == column) return meta_data;
  }
  throw std::runtime_error("no column " + std::string(column));
}

std::vector<Page> pages_of(std::string_view file, Thrift& meta_data) {
  const auto [start, size] = place_of(meta_data);
  if (start > file.size() || size > file.size() - start) throw std::runtime_error("pages outside the file");
  std::vector<Page> pages;
  for (auto left = file.substr(start, size); !left.empty();) {
    Page next;
    next.header = Thrift::parse(left);
    next.body = take_bytes(left, static_cast<std::size_t>(next.header[page::compressed_size].number));
    pages.push_back(next);
  }
  return pages;
}

std::vector<Page> pages_of(std::string_view file, std::string_view column) {
  Thrift tree = footer_of(file);
  return pages_of(file, column_of(tree, column));
}

void append_pages(std::string& data, Thrift& meta_data, const std::vector<Page>& pages) {
  const std::size_t start = data.size();
  std::erase_if(meta_data.fields, [](const auto& field) { return field.number == footer::dictionary_page_offset; });
  meta_data[footer::data_page_offset].type = Thrift::i64;
  meta_data[footer::data_page_offset].number = static_cast<std::int64_t>(start);
  for (const auto& one : pages) data += one.header.serialise() + one.body;
  meta_data[footer::compressed_size].type = Thrift::i64;
  meta_data[footer::compressed_size].number = static_cast<std::int64_t>(data.size() - start);
}

std::string with_pages(std::string_view file, std::string_view column, const std::vector<Page>& pages) {
  Thrift tree = footer_of(file);
  Thrift& chunk = column_of(tree, column);
  std::string data(file.substr(0, footer_start(file)));
  append_pages(data, chunk, pages);
  return with_footer(data + std::string(8, '\0'), tree);
}

}  // namespace headscope::test
