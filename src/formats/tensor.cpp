#include "formats/tensor.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "formats/quantised.h"

namespace headscope {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and so are our views of them");

struct TypeFacts {
  std::string_view name;
  std::size_t values, bytes;  // of a block
};

constexpr std::array<TypeFacts, tensor_types> type_facts = {{
    {"F64", 1, 8},
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    {"I64", 1, 8},
    {"I32", 1, 4},
    {"I16", 1, 2},
    {"I8", 1, 1},
    {"U64", 1, 8},
    {"U32", 1, 4},
    {"U16", 1, 2},
    {"U8", 1, 1},
    {"BOOL", 1, 1},
    // Scales are half precision, two bytes each; K types have 16 or 32 values to a scale of 4 to 8 bits.
    {"Q8_0", 32, 2 + 32},
    {"Q5_1", 32, 2 + 2 + 4 + 16},
    {"Q5_0", 32, 2 + 4 + 16},
    {"Q4_1", 32, 2 + 2 + 16},
    {"Q4_0", 32, 2 + 16},
    {"Q6_K", 256, 128 + 64 + 16 + 2},
    {"Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    {"Q4_K", 256, 2 + 2 + 12 + 128},
    {"Q3_K", 256, 32 + 64 + 12 + 2},
    {"Q2_K", 256, 16 + 64 + 2 + 2},
    {"IQ4_NL", 32, 2 + 16},
    {"IQ4_XS", 256, 2 + 2 + 4 + 128},
}};

const TypeFacts& facts(TensorType type) {
  return type_facts.at(static_cast<std::size_t>(type));
}

template <class Stored, class Convert>
void convert_values(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  const std::byte* from = bytes.data();
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    out[i] = convert(value);
  }
}

template <class Stored>
std::vector<std::int64_t> integers_of(const TensorView& tensor) {
  std::vector<std::int64_t> values(tensor.bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored value;
    std::memcpy(&value, tensor.bytes.data() + i * sizeof value, sizeof value);
    if (!std::in_range<std::int64_t>(value))
      fail_input("'{}' holds {}, which is too large for a signed 64-bit number", excerpt(tensor.name), value);
    values[i] = static_cast<std::int64_t>(value);
  }
  return values;
}

}  // namespace

std::string_view type_name(TensorType type) {
  return facts(type).name;
}

bool is_quantised(TensorType type) {
  return facts(type).values > 1;
}

bool is_integer(TensorType type) {
  return type >= TensorType::i64 && type <= TensorType::boolean;
}

std::size_t values_per_block(TensorType type) {
  return facts(type).values;
}

std::size_t bytes_per_block(TensorType type) {
  return facts(type).bytes;
}

std::optional<std::uint64_t> byte_size(TensorType type, std::span<const std::int64_t> shape) {
  const TypeFacts& block = facts(type);
  std::uint64_t size = block.bytes;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0) return {};
    auto dimension = static_cast<std::uint64_t>(shape[i]);
    if (i + 1 == shape.size()) {
      if (dimension % block.values != 0) return {};
      dimension /= block.values;
    }
    if (__builtin_mul_overflow(size, dimension, &size)) return {};
  }
  if (shape.empty() && block.values != 1) return {};
  return size;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::uint64_t value_count(const TensorView& tensor) {
  return tensor.bytes.size() / bytes_per_block(tensor.type) * values_per_block(tensor.type);
}

void read_floats(const TensorView& tensor, std::uint64_t first, std::span<float> out) {
  const std::uint64_t count = value_count(tensor), values = values_per_block(tensor.type);
  HEADSCOPE_CHECK(first <= count && out.size() <= count - first && first % values == 0 && out.size() % values == 0,
                  "{} of {}: {} values from {} on, of {}", tensor.name, type_name(tensor.type), out.size(), first,
                  count);
  const auto bytes = tensor.bytes.subspan(first / values * bytes_per_block(tensor.type),
                                          out.size() / values * bytes_per_block(tensor.type));
  if (out.empty()) return;
  switch (tensor.type) {
    case TensorType::f32:
      std::memcpy(out.data(), bytes.data(), bytes.size());
      return;
    case TensorType::f64:
      return convert_values<double>(bytes, out, [](double value) { return static_cast<float>(value); });
    case TensorType::f16:
      return convert_values<std::uint16_t>(bytes, out, [](std::uint16_t bits) { return half_to_float(bits); });
    case TensorType::bf16:
      return convert_values<std::uint16_t>(
          bytes, out, [](std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); });
    default:
      break;
  }
  if (is_integer(tensor.type))
    fail_input("tensor '{}' holds {}; expected floating-point values, such as F32 or BF16", excerpt(tensor.name),
               type_name(tensor.type));
  dequantise(tensor.type, bytes, out);
}

std::vector<std::int64_t> read_integers(const TensorView& tensor) {
  switch (tensor.type) {
    case TensorType::i64:
      return integers_of<std::int64_t>(tensor);
    case TensorType::i32:
      return integers_of<std::int32_t>(tensor);
    case TensorType::i16:
      return integers_of<std::int16_t>(tensor);
    case TensorType::i8:
      return integers_of<std::int8_t>(tensor);
    case TensorType::u64:
      return integers_of<std::uint64_t>(tensor);
    case TensorType::u32:
      return integers_of<std::uint32_t>(tensor);
    case TensorType::u16:
      return integers_of<std::uint16_t>(tensor);
    case TensorType::u8:
      return integers_of<std::uint8_t>(tensor);
    case TensorType::boolean: {
      std::vector<std::int64_t> values = integers_of<std::uint8_t>(tensor);
      for (std::int64_t& value : values) value = value != 0 ? 1 : 0;
      return values;
    }
    default:
      fail_input("'{}' holds {}; expected integers", excerpt(tensor.name), type_name(tensor.type));
  }
}

}  // namespace headscope
