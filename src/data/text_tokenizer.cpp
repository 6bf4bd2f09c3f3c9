#include "data/text_tokenizer.h"

#include "core/error.h"
#include "core/text.h"
#include "data/tokens.h"
#include "tokenizer/text_pattern.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"

namespace headscope {

TextTokenizer::TextTokenizer(const std::string& name)
    : given_(name), name_(byte_tokenizer::name), vocabulary_(byte_tokenizer::vocabulary) {
  if (name == byte_tokenizer::name) return;
  if (name.empty())
    fail_input("the tokenizer is empty; expected bytes, a tokenizer.json, a folder that holds one, or a GGUF file");
  tokenizer_ = std::make_unique<Tokenizer>(open_tokenizer(name));
  name_ = tokenizer_->name();
  vocabulary_ = tokenizer_->vocabulary();
}

void TextTokenizer::encode(std::string_view text, bool add_special, std::string_view place,
                           std::vector<std::uint32_t>& tokens) {
  if (tokenizer_) {
    tokenizer_->encode(text, tokens, {.add_special = add_special, .place = place});
  } else if (add_special) {
    byte_tokenizer::encode(text, tokens);
  } else {
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  }
}

void TextTokenizer::check_encoding(std::string_view document, const DocumentPlace& place) const {
  if (const auto wrong = tokenizer_ ? first_invalid_utf8(document) : std::nullopt)
    fail_input("{}: is not UTF-8; --tokenizer bytes takes any bytes", place.of(document, *wrong));
}

void TextTokenizer::encode_alone(std::string_view text, const DocumentPlace& place, std::size_t most,
                                 std::vector<std::uint32_t>& tokens) {
  check_encoding(text, place);
  if (tokenizer_) return tokenizer_->encode(text, tokens, {.add_special = true, .most = most});
  tokens.push_back(byte_tokenizer::start);
  for (const char c : text.substr(0, most - 1)) tokens.push_back(static_cast<unsigned char>(c));
}

std::string TextTokenizer::piece(std::uint32_t token) const {
  if (!tokenizer_) return fmt::format("<0x{:02X}>", token);
  return std::string(tokenizer_->piece(token).value_or(""));
}

std::string TextTokenizer::shown(std::uint32_t token) const {
  if (tokenizer_) {
    const auto bytes = tokenizer_->token_bytes(token);
    return bytes ? visible_bytes(*bytes) : fmt::format("⟨{}⟩", token);
  }
  if (token == byte_tokenizer::start) return "⟨start⟩";
  if (token == byte_tokenizer::end) return "⟨end⟩";
  return token < 256 ? visible_bytes(std::string(1, static_cast<char>(token))) : fmt::format("⟨{}⟩", token);
}

void TextTokenizer::encode_document(std::string_view document, const DocumentPlace& place,
                                    std::vector<std::uint32_t>& tokens) {
  const std::uint32_t end = end_of_text();
  const std::size_t before = tokens.size();
  check_encoding(document, place);
  encode(document, /*add_special=*/true, "", tokens);
  if (tokens.size() == before || tokens.back() != end) tokens.push_back(end);
}

std::uint32_t TextTokenizer::end_of_text() const {
  if (!tokenizer_) return byte_tokenizer::end;
  if (!tokenizer_->end_of_text())
    fail_input(
        "{}: no token is known that ends a text; tokenizer_config.json beside a tokenizer.json names it as "
        "\"eos_token\", a GGUF file as tokenizer.ggml.eos_token_id",
        given_);
  return *tokenizer_->end_of_text();
}

std::optional<std::uint32_t> TextTokenizer::begin_of_text() const {
  return tokenizer_ ? tokenizer_->begin_of_text() : byte_tokenizer::start;
}

void TextTokenizer::warn(Console& console) const {
  if (!tokenizer_) return;
  for (const std::string& warning : tokenizer_->warnings()) console.warn(fmt::format("{}: {}", given_, warning));
  const EncodeCounts counts = tokenizer_->counts();
  if (counts.newer_code_points > 0)
    console.warn(fmt::format(
        "{} of the text's code points are newer than Unicode {} of PCRE2: tokens there may differ from those "
        "of other programs",
        with_separators(counts.newer_code_points), pattern_unicode_version()));
  if (counts.vanished > 0)
    console.warn(fmt::format("{} characters have no token and were left out, as the tokenizer says",
                             with_separators(counts.vanished)));
}

}  // namespace headscope
