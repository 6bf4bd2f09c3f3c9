#include "tokenizer/decoder.h"

#include <optional>

#include "tokenizer/byte_characters.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

using Pieces = std::vector<std::string>;

Pieces decoded(const decoder::ByteLevel&, const Pieces& pieces) {
  std::string bytes;
  for (const std::string& piece : pieces) bytes += bytes_of_characters(piece).value_or(piece);
  return {replace_invalid_utf8(bytes)};
}

std::optional<char> fallback_byte(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || !piece.ends_with('>')) return std::nullopt;
  int value = 0;
  for (const char c : piece.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9', upper = c >= 'A' && c <= 'F', lower = c >= 'a' && c <= 'f';
    if (!digit && !upper && !lower) return std::nullopt;
    value = value * 16 + (digit ? c - '0' : upper ? c - 'A' + 10 : c - 'a' + 10);
  }
  return static_cast<char>(value);
}

Pieces decoded(const decoder::ByteFallback&, const Pieces& pieces) {
  Pieces out;
  std::string bytes;
  const auto flush = [&] {
    if (first_invalid_utf8(bytes))
      out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");
    else if (!bytes.empty())
      out.push_back(bytes);
    bytes.clear();
  };
  for (const std::string& piece : pieces) {
    if (const auto byte = fallback_byte(piece)) {
      bytes += *byte;
      continue;
    }
    flush();
    out.push_back(piece);
  }
  flush();
  return out;
}

Pieces decoded(const decoder::Fuse&, const Pieces& pieces) {
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return {all};
}

std::string replaced(std::string_view text, TextPattern pattern, std::string_view content) {
  std::vector<TextRange> matches;
  pattern.find(text, matches);
  return with_replaced(text, matches, content);
}

Pieces decoded(const decoder::Metaspace& step, Pieces pieces) {
  const TextPattern pattern = TextPattern::literal(step.replacement);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    pieces[i] = replaced(pieces[i], pattern, i == 0 && step.prepended ? "" : " ");
  return pieces;
}

Pieces decoded(const decoder::Replace& step, Pieces pieces) {
  for (std::string& piece : pieces) piece = replaced(piece, step.pattern, step.content);
  return pieces;
}

Pieces decoded(const decoder::Strip& step, Pieces pieces) {
  for (std::string& piece : pieces) {
    std::string_view kept = piece;
    for (std::size_t i = 0; i < step.start && kept.starts_with(step.content); ++i)
      kept.remove_prefix(step.content.size());
    for (std::size_t i = 0; i < step.stop && kept.ends_with(step.content); ++i) kept.remove_suffix(step.content.size());
    piece = std::string(kept);
  }
  return pieces;
}

Pieces decoded(const decoder::WordEnd& step, Pieces pieces) {
  const TextPattern pattern = TextPattern::literal(step.suffix);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    pieces[i] = replaced(pieces[i], pattern, i + 1 < pieces.size() ? " " : "");
  return pieces;
}

}  // namespace

std::string bytes_of_piece(const std::vector<decoder::Step>& steps, std::string piece) {
  for (const decoder::Step& step : steps) {
    if (std::holds_alternative<decoder::ByteLevel>(step)) {
      piece = bytes_of_characters(piece).value_or(piece);
    } else if (std::holds_alternative<decoder::ByteFallback>(step)) {
      if (const auto byte = fallback_byte(piece)) return {*byte};
    } else if (const auto* metaspace = std::get_if<decoder::Metaspace>(&step)) {
      piece = replaced(piece, TextPattern::literal(metaspace->replacement), " ");
    } else if (const auto* replace = std::get_if<decoder::Replace>(&step)) {
      piece = replaced(piece, replace->pattern, replace->content);
    } else if (const auto* word_end = std::get_if<decoder::WordEnd>(&step)) {
      piece = replaced(piece, TextPattern::literal(word_end->suffix), " ");
    }
  }
  return piece;
}

std::string decode_pieces(std::vector<decoder::Step>& steps, std::vector<std::string> pieces) {
  for (const decoder::Step& step : steps)
    pieces = std::visit([&](const auto& kind) { return decoded(kind, std::move(pieces)); }, step);
  return decoded(decoder::Fuse{}, pieces).front();
}

}  // namespace headscope
