#include "tokenizer/newer_code_points.h"

#include <string>
#include <vector>

#include "tokenizer/text_pattern.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

bool is_noncharacter(char32_t code_point) {
  return (code_point >= 0xFDD0 && code_point <= 0xFDEF) || (code_point & 0xFFFE) == 0xFFFE;
}

}  // namespace

std::int64_t NewerCodePoints::count(std::string_view text) {
  std::int64_t found = 0;
  for (std::size_t place = 0; place < text.size();) {
    if (static_cast<unsigned char>(text[place]) < 0x80)
      ++place;
    else
      found += is_newer(next_code_point(text, place)) ? 1 : 0;
  }
  return found;
}

bool NewerCodePoints::is_newer(char32_t code_point) {
  auto& asked = blocks_[code_point / block];
  if (!asked) {
    auto answer = std::make_shared<std::bitset<block>>();
    TextPattern unassigned = TextPattern::expression(R"(\p{Cn})");
    std::string text;
    std::vector<TextRange> matches;
    const char32_t first = code_point / block * block;
    for (char32_t i = 0; i < block; ++i) {
      if (is_noncharacter(first + i)) continue;
      text.clear();
      append_utf8(first + i, text);
      unassigned.find(text, matches);
      (*answer)[i] = !matches.empty();
    }
    asked = std::move(answer);
  }
  return (*asked)[code_point % block];
}

}  // namespace headscope
