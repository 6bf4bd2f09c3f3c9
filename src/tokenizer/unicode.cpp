#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

struct CodePointRange {
  char32_t first, last;
};

template <std::size_t Count>
bool is_in(char32_t code_point, const std::array<CodePointRange, Count>& ranges) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), code_point,
                                      [](char32_t value, const CodePointRange& range) { return value < range.first; });
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

// The tokenizers library normalises by the tables of Unicode 9: to it these later code points are letters without
// decomposition, composition and combining class. All that Unicode 10 to 17 added of another kind is here.
constexpr auto unnormalised = std::to_array<CodePointRange>(
    {{0x07FD, 0x07FD},   {0x0897, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},   {0x0C3C, 0x0C3C},
     {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x0ECE, 0x0ECE},   {0x1715, 0x1715},   {0x1ABF, 0x1AEB},
     {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},   {0xA7F1, 0xA7F4},   {0xA82C, 0xA82C},   {0xAB69, 0xAB69},
     {0x105C9, 0x105C9}, {0x105E4, 0x105E4}, {0x10781, 0x107BA}, {0x10D24, 0x10D27}, {0x10D69, 0x10D6D},
     {0x10EAB, 0x10EAC}, {0x10EFA, 0x10EFF}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070},
     {0x1133B, 0x1133B}, {0x11382, 0x113D0}, {0x113E1, 0x113E2}, {0x1145E, 0x1145E}, {0x11839, 0x1183A},
     {0x11930, 0x11930}, {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943},
     {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42},
     {0x11D44, 0x11D45}, {0x11D97, 0x11D97}, {0x11DD9, 0x11DD9}, {0x11F41, 0x11F42}, {0x1611E, 0x1612F},
     {0x16D63, 0x16D6A}, {0x16FF0, 0x16FF1}, {0x1CCD6, 0x1CCF9}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F},
     {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF},
     {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6}, {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5}, {0x1F16C, 0x1F16C},
     {0x1FBF0, 0x1FBF9}});

// Marks of today that Unicode 9 did not know, or did not call marks.
constexpr auto later_marks = std::to_array<CodePointRange>(
    {{0x07FD, 0x07FD},   {0x0897, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},   {0x0AFA, 0x0AFF},
     {0x0B55, 0x0B55},   {0x0C04, 0x0C04},   {0x0C3C, 0x0C3C},   {0x0CF3, 0x0CF3},   {0x0D00, 0x0D00},
     {0x0D3B, 0x0D3C},   {0x0D81, 0x0D81},   {0x0EBA, 0x0EBA},   {0x0ECE, 0x0ECE},   {0x1715, 0x1715},
     {0x180F, 0x180F},   {0x1ABF, 0x1AEB},   {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},
     {0xA8FF, 0xA8FF},   {0x10D24, 0x10D27}, {0x10D69, 0x10D6D}, {0x10EAB, 0x10EAC}, {0x10EFA, 0x10EFF},
     {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x11073, 0x11074}, {0x110C2, 0x110C2},
     {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241}, {0x1133B, 0x1133B},
     {0x113B8, 0x113E2}, {0x1145E, 0x1145E}, {0x1182C, 0x1183A}, {0x11930, 0x11943}, {0x119D1, 0x119E4},
     {0x11A01, 0x11A0A}, {0x11A33, 0x11A39}, {0x11A3B, 0x11A3E}, {0x11A47, 0x11A47}, {0x11A51, 0x11A5B},
     {0x11A8A, 0x11A99}, {0x11B60, 0x11B67}, {0x11D31, 0x11D47}, {0x11D8A, 0x11D97}, {0x11EF3, 0x11EF6},
     {0x11F00, 0x11F01}, {0x11F03, 0x11F03}, {0x11F34, 0x11F42}, {0x11F5A, 0x11F5A}, {0x13440, 0x13440},
     {0x13447, 0x13455}, {0x1611E, 0x1612F}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87}, {0x16FE4, 0x16FE4},
     {0x16FF0, 0x16FF1}, {0x1CF00, 0x1CF46}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE},
     {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF}, {0x1E6E3, 0x1E6E3}, {0x1E6E6, 0x1E6E6},
     {0x1E6EE, 0x1E6EF}, {0x1E6F5, 0x1E6F5}});

bool composes(NormalForm form) {
  return form == NormalForm::nfc || form == NormalForm::nfkc;
}

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE | (composes(form) ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (form == NormalForm::nfkc || form == NormalForm::nfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

// Normalises code points that come one after another.
class Normaliser {
 public:
  Normaliser(NormalForm form, std::string& out) : form_(form), options_(options_of(form)), out_(out) {}

  void add(char32_t code_point) {
    if (is_in(code_point, unnormalised)) {
      flush();
      append_utf8(code_point, out_);
      return;
    }
    std::array<utf8proc_int32_t, 64> parts{};  // the longest decomposition has 18
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code_point), parts.data(), parts.size(),
                                               options_, &boundary);
    HEADSCOPE_CHECK(count >= 0 && count <= std::ssize(parts), "{} parts of {:X}", count,
                    static_cast<std::uint32_t>(code_point));
    pending_.insert(pending_.end(), parts.begin(), parts.begin() + count);
  }

  void flush() {
    sort_marks();
    auto count = static_cast<utf8proc_ssize_t>(pending_.size());
    if (composes(form_)) count = utf8proc_normalize_utf32(pending_.data(), count, options_);
    HEADSCOPE_CHECK(count >= 0, "error {}", count);
    for (utf8proc_ssize_t i = 0; i < count; ++i)
      append_utf8(static_cast<char32_t>(pending_[static_cast<std::size_t>(i)]), out_);
    pending_.clear();
  }

 private:
  static int combining_class(utf8proc_int32_t code_point) { return utf8proc_get_property(code_point)->combining_class; }

  // The canonical order. utf8proc's own takes quadratic time on a long run of marks.
  void sort_marks() {
    const auto is_mark_here = [](utf8proc_int32_t code_point) { return combining_class(code_point) != 0; };
    for (auto first = pending_.begin(); first != pending_.end();) {
      first = std::find_if(first, pending_.end(), is_mark_here);
      const auto last = std::find_if_not(first, pending_.end(), is_mark_here);
      std::stable_sort(first, last, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
      first = last;
    }
  }

  NormalForm form_;
  utf8proc_option_t options_;
  std::string& out_;
  std::vector<utf8proc_int32_t> pending_;
};

}  // namespace

std::string to_normal_form(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  Normaliser normaliser(form, out);
  for (std::size_t place = 0; place < text.size();) normaliser.add(next_code_point(text, place));
  normaliser.flush();
  return out;
}

std::string to_lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t place = 0; place < text.size();) {
    const char32_t code_point = next_code_point(text, place);
    constexpr char32_t capital_i_with_dot = 0x130;  // the only one that becomes two
    if (code_point == capital_i_with_dot)
      out += "i\xCC\x87";
    else
      append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code_point))), out);
  }
  return out;
}

bool is_white_space(char32_t c) {
  return (c >= 0x9 && c <= 0xD) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_mark(char32_t code_point) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  const bool today =
      category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
  if (code_point == 0x1CF2 || code_point == 0x1CF3) return true;  // letters since Unicode 12
  return today && !is_in(code_point, later_marks);
}

std::string_view strip_left(std::string_view text) {
  std::size_t place = 0, kept = 0;
  while (place < text.size() && is_white_space(next_code_point(text, place))) kept = place;
  return text.substr(kept);
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    const char32_t last = last_code_point(text);
    if (!is_white_space(last)) break;
    text.remove_suffix(last < 0x80 ? 1 : last < 0x800 ? 2 : 3);
  }
  return text;
}

}  // namespace headscope
