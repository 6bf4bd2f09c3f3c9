// GGUF files: a model's weights, quantised or not, with its sizes and its tokenizer as metadata in one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/regular_file.h"
#include "formats/tensor.h"

namespace headscope {

// Kinds of values in the metadata, with their numbers in the file.
enum class GgufKind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

// A value of the metadata, or a list of values of one kind. The bytes are those of the file, checked.
struct GgufValue {
  GgufKind kind = GgufKind::u8;  // of a list: of its values
  bool is_list = false;
  std::uint64_t count = 1;  // of a list: of its values
  std::span<const std::byte> bytes;
};

// The metadata by key: "general.architecture", "llama.block_count", "tokenizer.ggml.tokens". Every function throws
// Error(Fault::input) naming file and key: when the key is absent and `without` is not given, and when the value is of
// another kind. Integers of any width are integers; a number may be an integer, too.
class GgufMetadata {
 public:
  [[nodiscard]] bool contains(std::string_view key) const { return values_.contains(key); }
  [[nodiscard]] const GgufValue& get(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> keys() const;  // sorted

  [[nodiscard]] std::string text(std::string_view key, std::optional<std::string> without = {}) const;
  [[nodiscard]] std::int64_t integer(std::string_view key, std::optional<std::int64_t> without = {}) const;
  [[nodiscard]] double number(std::string_view key, std::optional<double> without = {}) const;
  [[nodiscard]] bool boolean(std::string_view key, std::optional<bool> without = {}) const;

  // Lists. Texts are views of the file.
  [[nodiscard]] std::vector<std::string_view> texts(std::string_view key) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key) const;
  [[nodiscard]] std::vector<double> numbers(std::string_view key) const;
  [[nodiscard]] std::vector<bool> booleans(std::string_view key) const;

 private:
  friend class GgufParser;

  const GgufValue& one_value(std::string_view key) const;
  const GgufValue& list_of(std::string_view key) const;
  [[noreturn]] void fail_kind(std::string_view key, std::string_view expected) const;

  std::string origin_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

struct GgufContent {
  std::uint32_t version = 0;
  GgufMetadata metadata;
  std::vector<TensorView> tensors;  // in the order of the file; views of the parsed bytes
};

// Versions 2 and 3, little-endian. Every claim is checked before memory is taken: counts, lengths, kinds, types and
// shapes, names unique, and tensors that lie in the file, aligned, without overlap. Shapes are row by row: the last
// dimension is the one that GGUF names first. `origin` names the file in errors. Throws Error(Fault::input) naming file
// and key or tensor; a tensor of a type that cannot be read is named with it.
GgufContent parse_gguf(std::span<const std::byte> bytes, const std::string& origin);

// A mapped file: a tensor is read when its bytes are touched. Views stay valid as long as the object exists, also after
// a move.
class Gguf {
 public:
  // A model may be in several files, NAME-00001-of-00003.gguf and so on: any of them stands for all, which are opened.
  // Throws Error(Fault::input) naming the file when one is not there, is of another model, or has a tensor of another.
  explicit Gguf(std::filesystem::path file);

  [[nodiscard]] const std::filesystem::path& path() const { return paths_.front(); }
  [[nodiscard]] const std::vector<std::filesystem::path>& paths() const { return paths_; }
  // Of the first file; others have nothing of their own.
  [[nodiscard]] std::uint32_t version() const { return content_.version; }
  [[nodiscard]] const GgufMetadata& metadata() const { return content_.metadata; }
  [[nodiscard]] const std::vector<TensorView>& tensors() const { return content_.tensors; }
  [[nodiscard]] std::string hash() const;  // of all bytes, which are read for it

 private:
  std::vector<std::filesystem::path> paths_;
  std::vector<MappedFile> files_;
  GgufContent content_;
};

// Whether the file begins as GGUF files do. False for what cannot be read.
bool is_gguf(const std::filesystem::path& file);

}  // namespace headscope
