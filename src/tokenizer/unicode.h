// What tokenizers ask of Unicode beside split patterns: normal forms, case, white space, marks. The tables are those of
// utf8proc. Where the `tokenizers` library, whose ids published models were trained with, has older ones, so do we.
#pragma once

#include <string>
#include <string_view>

namespace headscope {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

// The text is valid UTF-8. Linear time but for sorting marks.
std::string to_normal_form(std::string_view text, NormalForm form);

// Code point by code point, without context: every sigma becomes the same one.
std::string to_lower_case(std::string_view text);

// The property White_Space.
bool is_white_space(char32_t code_point);

// General category M in Unicode 9.
bool is_mark(char32_t code_point);

// The text without white space at its ends.
std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

}  // namespace headscope
