// Tensors as they lie in files: a name, a type, a shape and bytes. safetensors.h, gguf.h and npz.h give such tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

enum class TensorType {
  // One value after another.
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  // Blocks of values with common scales (formats/quantised.h). A row is a whole number of blocks.
  q8_0,
  q5_1,
  q5_0,
  q4_1,
  q4_0,
  q6_k,
  q5_k,
  q4_k,
  q3_k,
  q2_k,
  iq4_nl,
  iq4_xs,
};
inline constexpr int tensor_types = static_cast<int>(TensorType::iq4_xs) + 1;

std::string_view type_name(TensorType type);    // as in files: "F32", "Q4_K"
bool is_quantised(TensorType type);             // stored in blocks
bool is_integer(TensorType type);               // boolean, too
std::size_t values_per_block(TensorType type);  // 1 where the type is not quantised
std::size_t bytes_per_block(TensorType type);

// The values lie elsewhere in memory, little-endian, row by row. In a file they may start at any byte: copy them where
// alignment matters.
struct TensorView {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;  // empty: one value
  std::span<const std::byte> bytes;
};

// Nothing when a dimension is negative, when the size does not fit 64 bits, or when a row is not a whole number of
// blocks.
std::optional<std::uint64_t> byte_size(TensorType type, std::span<const std::int64_t> shape);

// "[2, 3]"
std::string shape_text(std::span<const std::int64_t> shape);

std::uint64_t value_count(const TensorView& tensor);

// Converts the values first ... first + out.size() - 1, counted row by row, to float32. Both ends lie between blocks.
// Several threads may convert parts of one tensor. float64 is rounded; every other conversion is exact up to the type's
// own definition. Throws Error(Fault::input) naming the tensor when its values are integers.
void read_floats(const TensorView& tensor, std::uint64_t first, std::span<float> out);

// All values. Throws Error(Fault::input) naming the tensor when they are not integers or do not fit 64 bits.
std::vector<std::int64_t> read_integers(const TensorView& tensor);

}  // namespace headscope
