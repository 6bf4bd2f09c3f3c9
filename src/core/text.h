// Numbers and sentences as people read them: what rounds to zero has no sign, rounding moves no number across a limit
// that a sentence compares it with, lines have a width.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace headscope {

// So many digits behind the point. More where rounding would put the value on the other side of a limit, or on it:
// 1.0998 with three digits beside the limit 1.1 is "1.0998".
std::string fixed_text(double value, int digits, std::initializer_list<double> limits = {});

// The same with a sign, none for what rounds to zero: "+1.50", "-0.25", "0.00".
std::string signed_text(double value, int digits, std::initializer_list<double> limits = {});

// "614,400"
std::string with_separators(std::int64_t count);

// "614,400 tokens"; from a million on "49.2 M tokens".
std::string tokens_text(std::int64_t count);

// Characters as a terminal shows them: bytes that continue a UTF-8 sequence take no place.
std::size_t width_of(std::string_view text);

// The words of a text in lines of at most `width` characters, all but the first with `indent` spaces before them. The
// first line goes on behind `column` characters that are there already. No line break at the end.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent, std::size_t column);

// A word of a shell command that means this text.
std::string shell_word(std::string_view text);

// Of ASCII letters.
std::string lower_case(std::string_view text);

}  // namespace headscope
