#include "tokenizer/normalizer.h"

#include <algorithm>

#include "core/error.h"
#include "tokenizer/byte_characters.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

void apply(NormalForm form, NormalizedText& text) {
  text.text = to_normal_form(text.text, form);
}

void apply(const normalizer::Lowercase&, NormalizedText& text) {
  text.text = to_lower_case(text.text);
}

void apply(const normalizer::Strip& strip, NormalizedText& text) {
  std::string_view kept = text.text;
  if (strip.left) kept = strip_left(kept);
  if (kept.size() < text.text.size()) text.at_start = false;
  if (strip.right) kept = strip_right(kept);
  text.text = std::string(kept);
}

void apply(const normalizer::StripAccents&, NormalizedText& text) {
  std::string kept;
  for (std::size_t place = 0; place < text.text.size();) {
    const std::size_t begin = place;
    if (!is_mark(next_code_point(text.text, place)))
      kept += std::string_view(text.text).substr(begin, place - begin);
    else if (begin == 0)
      text.at_start = false;
  }
  text.text = std::move(kept);
}

void apply(normalizer::Replace& replace, NormalizedText& text) {
  std::vector<TextRange> matches;
  replace.pattern.find(text.text, matches);
  if (matches.empty()) return;
  if (replace.content.empty() && matches[0].begin == 0 && matches[0].end > 0) text.at_start = false;
  constexpr std::size_t most_memory = std::size_t{1} << 30;
  if (matches.size() > most_memory / std::max<std::size_t>(1, replace.content.size()))
    fail_input("the normaliser of the tokenizer makes a text longer than {} bytes", most_memory);
  text.text = with_replaced(text.text, matches, replace.content);
}

void apply(const normalizer::Prepend& prepend, NormalizedText& text) {
  if (!text.text.empty()) text.text.insert(0, prepend.text);
}

void apply(const normalizer::BytesAsCharacters&, NormalizedText& text) {
  std::string characters;
  append_byte_characters(text.text, characters);
  text.text = std::move(characters);
}

}  // namespace

void normalize(std::vector<normalizer::Step>& steps, NormalizedText& text) {
  constexpr std::size_t most_growth = 64, always = std::size_t{1} << 20;
  const std::size_t most = std::max(always, most_growth * text.text.size());
  for (normalizer::Step& step : steps) {
    std::visit([&](auto& kind) { apply(kind, text); }, step);
    if (text.text.size() > most)
      fail_input("the normaliser of the tokenizer makes a text more than {} times as long", most_growth);
  }
}

}  // namespace headscope
