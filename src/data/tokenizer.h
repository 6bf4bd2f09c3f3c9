// Text to token ids.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::int64_t vocabulary() const = 0;
  [[nodiscard]] virtual std::uint32_t end_of_text() const = 0;
  // The token before each document, where the tokenizer has one.
  [[nodiscard]] virtual std::optional<std::uint32_t> begin_of_text() const = 0;
  // Appends the tokens of the text, without special ones.
  virtual void encode(std::string_view text, std::vector<std::uint32_t>& tokens) const = 0;
};

// A token per byte: any text, no files needed.
class ByteTokenizer final : public Tokenizer {
 public:
  static constexpr std::uint32_t end = 256, start = 257;
  static constexpr std::int64_t size = 258;

  [[nodiscard]] std::string name() const override { return "bytes"; }
  [[nodiscard]] std::int64_t vocabulary() const override { return size; }
  [[nodiscard]] std::uint32_t end_of_text() const override { return end; }
  [[nodiscard]] std::optional<std::uint32_t> begin_of_text() const override { return start; }
  void encode(std::string_view text, std::vector<std::uint32_t>& tokens) const override;
};

// The tokenizer of that name. Throws Error(Fault::input) naming those there are.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name);

}  // namespace headscope
