#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "core/error.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace headscope {

AddedTokenFinder::AddedTokenFinder(const std::vector<const AddedToken*>& tokens,
                                   const std::vector<std::string>& contents) {
  HEADSCOPE_CHECK(tokens.size() == contents.size(), "{} tokens, {} contents", tokens.size(), contents.size());
  first_.fill(-1);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (contents[i].size() > longest_added_token)
      fail_input("the added token '{}' has {} bytes; expected at most {}", excerpt(contents[i], 60), contents[i].size(),
                 longest_added_token);
    if (!contents[i].empty()) insert(contents[i], *tokens[i]);
  }
}

void AddedTokenFinder::insert(std::string_view content, const AddedToken& token) {
  const auto make = [&](unsigned char byte, std::int32_t sibling) {
    nodes_.push_back({byte, -1, sibling, nullptr});
    return static_cast<std::int32_t>(nodes_.size()) - 1;
  };
  std::int32_t& root = first_[static_cast<unsigned char>(content[0])];
  if (root < 0) root = make(static_cast<unsigned char>(content[0]), -1);
  std::int32_t node = root;
  for (const char c : content.substr(1)) {
    std::int32_t child = child_of(node, static_cast<unsigned char>(c));
    if (child < 0) {
      child = make(static_cast<unsigned char>(c), nodes_[static_cast<std::size_t>(node)].child);
      nodes_[static_cast<std::size_t>(node)].child = child;
    }
    node = child;
  }
  const AddedToken*& there = nodes_[static_cast<std::size_t>(node)].token;
  if (there == nullptr) there = &token;
}

std::int32_t AddedTokenFinder::child_of(std::int32_t node, unsigned char byte) const {
  std::int32_t child = nodes_[static_cast<std::size_t>(node)].child;
  while (child >= 0 && nodes_[static_cast<std::size_t>(child)].byte != byte)
    child = nodes_[static_cast<std::size_t>(child)].sibling;
  return child;
}

const AddedToken* AddedTokenFinder::longest_at(std::string_view text, std::size_t place, std::size_t& end) const {
  const AddedToken* longest = nullptr;
  std::int32_t node = first_[static_cast<unsigned char>(text[place])];
  while (node >= 0) {
    ++place;
    if (const AddedToken* token = nodes_[static_cast<std::size_t>(node)].token) {
      longest = token;
      end = place;
    }
    node = place < text.size() ? child_of(node, static_cast<unsigned char>(text[place])) : -1;
  }
  return longest;
}

void AddedTokenFinder::split(std::string_view text, std::vector<AddedTokenMatch>& parts) {
  parts.clear();
  std::size_t done = 0;  // what is part of `parts`
  for (std::size_t place = 0; !nodes_.empty() && place < text.size();) {
    TextRange range{place, place};
    const AddedToken* token = longest_at(text, place, range.end);
    if (token == nullptr) {
      ++place;
      continue;
    }
    place = range.end;  // also behind a token that is not taken
    if (token->single_word && is_inside_word(text, range)) continue;
    if (token->strip_left) range.begin = std::max(strip_right(text.substr(0, range.begin)).size(), done);
    if (token->strip_right) range.end = text.size() - strip_left(text.substr(range.end)).size();
    if (done < range.begin) parts.push_back({{done, range.begin}, nullptr});
    parts.push_back({range, token});
    done = range.end;
  }
  if (done < text.size()) parts.push_back({{done, text.size()}, nullptr});
}

bool AddedTokenFinder::is_inside_word(std::string_view text, TextRange range) {
  if (range.begin > 0 && is_word_character(last_code_point(text.substr(0, range.begin)))) return true;
  return range.end < text.size() && is_word_character(next_code_point(text, range.end));
}

bool AddedTokenFinder::is_word_character(char32_t code_point) {
  if (word_.empty()) word_.push_back(TextPattern::expression(fmt::format("[{}]", rust_word_characters)));
  std::string character;
  append_utf8(code_point, character);
  std::vector<TextRange> matches;
  word_.front().find(character, matches);
  return !matches.empty();
}

}  // namespace headscope
