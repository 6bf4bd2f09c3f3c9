#include "formats/npy_header.h"

#include <array>
#include <charconv>

#include "core/error.h"

namespace headscope {
namespace {

constexpr std::string_view npy_magic = "\x93NUMPY";
// Ours are below 200 bytes, and NumPy itself refuses more than 10,000.
constexpr std::size_t longest_npy_dictionary = 65'536;
constexpr std::size_t most_npy_dimensions = 64;  // NumPy's limit

struct NumpyType {
  std::string_view code;  // kind and bytes
  TensorType type;
};
constexpr std::array<NumpyType, 12> numpy_types = {{{"f8", TensorType::f64},
                                                    {"f4", TensorType::f32},
                                                    {"f2", TensorType::f16},
                                                    {"i8", TensorType::i64},
                                                    {"i4", TensorType::i32},
                                                    {"i2", TensorType::i16},
                                                    {"i1", TensorType::i8},
                                                    {"u8", TensorType::u64},
                                                    {"u4", TensorType::u32},
                                                    {"u2", TensorType::u16},
                                                    {"u1", TensorType::u8},
                                                    {"b1", TensorType::boolean}}};

// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), } with its keys in any order.
class DictionaryReader {
 public:
  DictionaryReader(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  NpyHeader read() {
    NpyHeader header;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!skip('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !std::exchange(descr, true))
        set_type(header);
      else if (key == "fortran_order" && !std::exchange(order, true))
        header.fortran_order = boolean();
      else if (key == "shape" && !std::exchange(shape, true))
        header.shape = tuple();
      else
        fail_input("{}: its header has an unexpected '{}'; expected descr, fortran_order, shape once each", where_,
                   excerpt(key));
      if (skip('}')) break;
      expect(',');
    }
    skip_spaces();
    if (place_ != text_.size()) fail("the end");
    if (!descr || !order || !shape) fail_input("{}: its header lacks descr, fortran_order or shape", where_);
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    fail_input("{}: its header is damaged at character {}; expected {}", where_, place_, expected);
  }

  void skip_spaces() {
    while (place_ < text_.size() && (text_[place_] == ' ' || text_[place_] == '\n')) ++place_;
  }

  bool skip(char c) {
    skip_spaces();
    if (place_ == text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }

  void expect(char c) {
    if (!skip(c)) fail(fmt::format("'{}'", c));
  }

  // Neither a key nor a type has a quote or a backslash inside.
  std::string_view quoted() {
    skip_spaces();
    if (place_ == text_.size() || (text_[place_] != '\'' && text_[place_] != '"')) fail("a text in quotes");
    const std::size_t begin = place_ + 1, end = text_.find(text_[place_], begin);
    if (end == std::string_view::npos) fail("a text in quotes");
    place_ = end + 1;
    return text_.substr(begin, end - begin);
  }

  bool boolean() {
    skip_spaces();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(place_).starts_with(word)) continue;
      place_ += word.size();
      return value;
    }
    fail("True or False");
  }

  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!skip(')')) {
      skip_spaces();
      std::int64_t value = 0;
      const char* const begin = text_.data() + place_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
      if (error != std::errc() || value < 0) fail("a dimension from 0 to 2^63 - 1");
      if (values.size() == most_npy_dimensions) fail("at most 64 dimensions");
      values.push_back(value);
      place_ += static_cast<std::size_t>(end - begin);
      if (place_ < text_.size() && text_[place_] == 'L') ++place_;  // of Python 2
      if (skip(')')) break;
      expect(',');
    }
    return values;
  }

  void set_type(NpyHeader& header) {
    skip_spaces();
    if (place_ < text_.size() && text_[place_] == '[')
      fail_input("{}: is an array of records with fields; save each field as an array of its own", where_);
    const std::string_view descr = quoted();
    const std::string_view code = descr.empty() ? descr : descr.substr(1);
    for (const NumpyType& known : numpy_types) {
      if (known.code != code || std::string_view("<>|").find(descr.front()) == std::string_view::npos) continue;
      header.type = known.type;
      header.big_endian = descr.front() == '>';
      return;
    }
    fail_input("{}: is of NumPy's type '{}'{}; expected float16 to float64, int8 to int64, uint8 to uint64 or bool",
               where_, excerpt(descr, 40), code.starts_with('O') ? " (Python objects)" : "");
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t place_ = 0;
};

}  // namespace

std::optional<NpyPreamble> parse_npy_preamble(std::string_view start, const std::string& where) {
  if (start.size() < npy_shortest_preamble || !start.starts_with(npy_magic))
    fail_input("{}: is not an array of NumPy (.npy): it does not begin with \\x93NUMPY", where);
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(start[i])); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0)
    fail_input("{}: has version {}.{} of the .npy format; known are 1.0, 2.0 and 3.0", where, version, byte(7));
  NpyPreamble preamble{npy_shortest_preamble, byte(8) | byte(9) << 8};
  if (version > 1) {
    if (start.size() < npy_longest_preamble) return {};
    preamble = {npy_longest_preamble, preamble.length | byte(10) << 16 | byte(11) << 24};
  }
  if (preamble.length > longest_npy_dictionary)
    fail_input("{}: claims a header of {} bytes; at most {} are allowed", where, preamble.length,
               longest_npy_dictionary);
  return preamble;
}

NpyHeader parse_npy_dictionary(std::string_view text, const std::string& where) {
  return DictionaryReader(text, where).read();
}

std::string npy_header_text(TensorType type, const std::vector<std::int64_t>& shape) {
  const auto known =
      std::find_if(numpy_types.begin(), numpy_types.end(), [&](const NumpyType& entry) { return entry.type == type; });
  HEADSCOPE_CHECK(known != numpy_types.end(), "NumPy has no name for the type {}", type_name(type));
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 bytes_per_block(type) == 1 ? '|' : '<', known->code, fmt::join(shape, ", "),
                                 shape.size() == 1 ? "," : "");
  constexpr std::size_t alignment = 64;
  text.append((alignment - (npy_shortest_preamble + text.size() + 1) % alignment) % alignment, ' ');
  text += '\n';
  HEADSCOPE_CHECK(text.size() < 65'536, "a header of {} bytes", text.size());
  return std::string(npy_magic) + std::string("\1\0", 2) + static_cast<char>(text.size() & 255) +
         static_cast<char>(text.size() >> 8) + text;
}

}  // namespace headscope
