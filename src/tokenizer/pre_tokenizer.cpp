#include "tokenizer/pre_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/byte_characters.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace pre_tokenizer {

Split digits(bool individual) {
  return {TextPattern::expression(R"(\p{N})"), individual ? Behavior::isolated : Behavior::contiguous};
}

Split punctuation(Behavior behavior) {
  // The tokenizers library has the punctuation of Unicode 8; what came or became punctuation later is excluded, and
  // what was it then is included.
  constexpr const char* later =
      R"(\x{61D}\x{9FD}\x{A76}\x{C77}\x{C84}\x{1B4E}\x{1B4F}\x{1B7D}-\x{1B7F}\x{2E43}-\x{2E4F}\x{2E52}-\x{2E5D})"
      R"(\x{10D6E}\x{10EAD}\x{10ED0}\x{10F55}-\x{10F59}\x{10F86}-\x{10F89}\x{113D4}-\x{113D8}\x{1144B}-\x{1144F})"
      R"(\x{1145A}-\x{1145D}\x{11660}-\x{1166C}\x{116B9}\x{1183B}\x{11944}-\x{11946}\x{119E2}\x{11A3F}-\x{11A46})"
      R"(\x{11A9A}-\x{11AA2}\x{11B00}-\x{11B09}\x{11BE1}\x{11C41}-\x{11C71}\x{11EF7}\x{11EF8}\x{11F43}-\x{11F4F})"
      R"(\x{11FFF}\x{12FF1}\x{12FF2}\x{16D6D}-\x{16D6F}\x{16E97}-\x{16E9A}\x{16FE2}\x{1E5FF}\x{1E95E}\x{1E95F})";
  return {TextPattern::expression(fmt::format(R"([\p{{P}}$+<=>^`|~\x{{166D}}\x{{111C9}}&&[^{}]])", later)), behavior};
}

Split words_and_signs() {
  return {TextPattern::expression(fmt::format(R"([{0}]+|[^{0}\s]+)", rust_word_characters)), Behavior::removed,
          /*invert=*/true};
}

Split white_space() {
  return {TextPattern::expression(R"(\s)"), Behavior::removed};
}

}  // namespace pre_tokenizer

PreTokenizer::PreTokenizer(std::vector<pre_tokenizer::Step> steps) : steps_(std::move(steps)) {
  for (const pre_tokenizer::Step& step : steps_) {
    const auto* bytes = std::get_if<pre_tokenizer::ByteLevel>(&step);
    if (bytes != nullptr && bytes->use_pattern) gpt2_ = {TextPattern::expression(pre_tokenizer::gpt2_pattern)};
    if (const auto* split = std::get_if<pre_tokenizer::Split>(&step))
      asks_categories_ |= split->pattern.asks_categories();
  }
  if (gpt2_) asks_categories_ = true;
}

void PreTokenizer::cut(NormalizedText& text, std::vector<TextRange>& words) {
  words.clear();
  if (!text.text.empty()) words.push_back({0, text.text.size()});
  for (pre_tokenizer::Step& step : steps_) std::visit([&](auto& kind) { apply(kind, text, words); }, step);
}

void PreTokenizer::apply(pre_tokenizer::Split& step, NormalizedText& text, std::vector<TextRange>& words) {
  cut_.clear();
  for (const TextRange& word : words) {
    find_parts(step, std::string_view(text.text).substr(word.begin, word.end - word.begin), word.begin);
    const std::size_t first = cut_.size();
    const auto add = [&](const Part& part) { cut_.push_back(part.range); };
    bool previous_match = false;
    if (step.behavior == pre_tokenizer::Behavior::merged_with_next) {
      for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
        if (part->is_match && !previous_match && cut_.size() > first)
          cut_.back().begin = part->range.begin;
        else
          add(*part);
        previous_match = part->is_match;
      }
      std::reverse(cut_.begin() + static_cast<std::ptrdiff_t>(first), cut_.end());
    } else {
      for (const Part& part : parts_) {
        if (step.behavior == pre_tokenizer::Behavior::removed && part.is_match) continue;
        const bool joins =
            step.behavior == pre_tokenizer::Behavior::contiguous
                ? part.is_match == previous_match
                : step.behavior == pre_tokenizer::Behavior::merged_with_previous && part.is_match && !previous_match;
        if (joins && cut_.size() > first)
          cut_.back().end = part.range.end;
        else
          add(part);
        previous_match = part.is_match;
      }
    }
  }
  std::erase_if(cut_, [](const TextRange& word) { return word.begin == word.end; });
  words.swap(cut_);
}

// Matches and what is between them.
void PreTokenizer::find_parts(pre_tokenizer::Split& step, std::string_view word, std::size_t offset) {
  step.pattern.find(word, matches_);
  parts_.clear();
  std::size_t done = 0;
  for (const TextRange& match : matches_) {
    if (done != match.begin) parts_.push_back({{offset + done, offset + match.begin}, step.invert});
    parts_.push_back({{offset + match.begin, offset + match.end}, !step.invert});
    done = match.end;
  }
  if (done != word.size()) parts_.push_back({{offset + done, offset + word.size()}, step.invert});
}

template <class Rewrite>
void PreTokenizer::rewrite_words(NormalizedText& text, std::vector<TextRange>& words, const Rewrite& rewrite) {
  std::string rewritten;
  rewritten.reserve(text.text.size() + text.text.size() / 2);
  const bool keeps_start = !words.empty() && words.front().begin == 0;
  for (TextRange& word : words) {
    const std::size_t begin = rewritten.size();
    const bool is_first = text.at_start && word.begin == 0;
    rewrite(std::string_view(text.text).substr(word.begin, word.end - word.begin), is_first, rewritten);
    word = {begin, rewritten.size()};
  }
  text.at_start = text.at_start && keeps_start;
  text.text = std::move(rewritten);
}

void PreTokenizer::apply(const pre_tokenizer::ByteLevel& step, NormalizedText& text, std::vector<TextRange>& words) {
  if (step.add_prefix_space)
    rewrite_words(text, words, [](std::string_view word, bool, std::string& out) {
      if (!word.starts_with(' ')) out += ' ';
      out += word;
    });
  if (step.use_pattern) apply(*gpt2_, text, words);
  rewrite_words(text, words, [](std::string_view word, bool, std::string& out) { append_byte_characters(word, out); });
}

void PreTokenizer::apply(const pre_tokenizer::Metaspace& step, NormalizedText& text, std::vector<TextRange>& words) {
  rewrite_words(text, words, [&](std::string_view word, bool is_first, std::string& out) {
    const bool starts = word.starts_with(' ') || word.starts_with(step.replacement);
    const bool wanted = step.prepend == pre_tokenizer::PrependScheme::always ||
                        (step.prepend == pre_tokenizer::PrependScheme::first && is_first);
    if (wanted && !starts) out += step.replacement;
    for (const char c : word) {
      if (c == ' ')
        out += step.replacement;
      else
        out += c;
    }
  });
  pre_tokenizer::Split split{TextPattern::literal(step.replacement), pre_tokenizer::Behavior::merged_with_next};
  if (step.split) apply(split, text, words);
}

}  // namespace headscope
