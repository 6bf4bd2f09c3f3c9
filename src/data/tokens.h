// Token ids: the tokenizer that makes them of text, and arrays of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

namespace headscope {

// Text to token ids: one for each byte. Any text, no files needed.
namespace byte_tokenizer {

inline constexpr const char* name = "bytes";
inline constexpr std::uint32_t end = 256, start = 257;
inline constexpr std::int64_t vocabulary = 258;

// Appends the document's tokens, between those that mark its start and its end.
inline void encode(std::string_view document, std::vector<std::uint32_t>& tokens) {
  tokens.reserve(tokens.size() + document.size() + 2);
  tokens.push_back(start);
  for (const char c : document) tokens.push_back(static_cast<unsigned char>(c));
  tokens.push_back(end);
}

}  // namespace byte_tokenizer

// Two bytes a token where the vocabulary allows it: half the memory, half the file.
using TokenSpan = std::variant<std::span<const std::uint16_t>, std::span<const std::uint32_t>>;

constexpr bool needs_four_bytes(std::int64_t vocabulary) {
  return vocabulary > 65536;
}

struct TokenRange {
  std::int64_t first = 0, count = 0;
};

// A read-only array of token ids: ranges of one store, which is in memory or a mapped file, put one after another.
class Tokens {
 public:
  Tokens() = default;
  // `owner` keeps the memory behind `store` alive.
  Tokens(std::shared_ptr<const void> owner, TokenSpan store, std::span<const TokenRange> ranges);

  [[nodiscard]] std::int64_t size() const { return starts_.empty() ? 0 : starts_.back(); }
  // `count` tokens from `first` on, as the ids that a model takes.
  void copy(std::int64_t first, std::int64_t count, std::int64_t* out) const;

 private:
  std::shared_ptr<const void> owner_;
  TokenSpan store_;
  std::vector<TokenRange> ranges_;    // adjacent ranges are joined
  std::vector<std::int64_t> starts_;  // where each range begins in this array, and the end
};

// The loss of a model that knows only how frequent each token is: nats per token, of the first 2^27 tokens at most. Ids
// are below `vocabulary`.
double unigram_entropy(const Tokens& tokens, std::int64_t vocabulary);

// Tokens that grow in memory.
class TokenBuffer {
 public:
  explicit TokenBuffer(std::int64_t vocabulary);
  void append(std::span<const std::uint32_t> tokens);
  [[nodiscard]] std::int64_t size() const;
  [[nodiscard]] TokenSpan span() const;

 private:
  std::variant<std::vector<std::uint16_t>, std::vector<std::uint32_t>> tokens_;
};

}  // namespace headscope
