// Pieces of gnuplot scripts. A text of a file, a name or a flag never becomes code: a Script is made of string literals
// of this program (constant arrays of characters), finite numbers, checked names and texts in quotes. The compiler
// refuses anything else.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/error.h"

namespace headscope {

class Script;

template <class T>
concept ScriptPart = std::same_as<T, Script> || std::floating_point<T> ||
    (std::integral<T> && !std::same_as<T, bool> && sizeof(T) > 1);

class Script {
 public:
  Script() = default;
  // A literal. Not a buffer: its content is known only when the program runs.
  template <std::size_t N>
  Script(const char (&literal)[N]) : text_(literal, N - 1) {}
  template <std::size_t N>
  Script(char (&)[N]) = delete;

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  Script& operator+=(const Script& other) {
    text_ += other.text_;
    return *this;
  }
  friend Script operator+(Script left, const Script& right) { return std::move(left += right); }

 private:
  struct Made {
    std::string text;
  };
  explicit Script(Made made) : text_(std::move(made.text)) {}
  friend Script gnuplot_text(std::string_view text);
  friend Script gnuplot_name(std::string_view name);
  template <ScriptPart... Parts>
  friend Script format_script(fmt::format_string<const Parts&...> format, const Parts&... parts);

  std::string text_;
};

// A single-quoted gnuplot string that shows `text` as it is: characters that enhanced text would interpret (_ ^ { } @ &
// ~ \) are escaped, control characters become spaces, bytes that are not UTF-8 become U+FFFD. In single quotes gnuplot
// runs no `command` and expands no @macro, so a hostile model name stays a name.
Script gnuplot_text(std::string_view text);

// A name of ours: of a figure, a data block, a column, a colour. An internal error when it holds anything but ASCII
// letters, digits and underscores.
Script gnuplot_name(std::string_view name);

// fmt::format for scripts. The parts are numbers and scripts; a number that is not finite is an internal error, since
// gnuplot would read "nan" and "inf" as names of variables.
template <ScriptPart... Parts>
Script format_script(fmt::format_string<const Parts&...> format, const Parts&... parts) {
  const auto check_finite = [](const auto& part) {
    if constexpr (std::is_floating_point_v<std::remove_cvref_t<decltype(part)>>)
      HEADSCOPE_CHECK(std::isfinite(part), "a script needs a number, this is {}", part);
  };
  (check_finite(parts), ...);
  return Script(Script::Made{fmt::vformat(format, fmt::make_format_args(parts...))});
}

Script join(std::span<const Script> parts, const Script& separator);

// At most `limit` characters (UTF-8 sequences), with an ellipsis in the middle where some were left out.
std::string shorten(std::string_view text, std::size_t limit);

}  // namespace headscope

template <>
struct fmt::formatter<headscope::Script> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const headscope::Script& script, Context& context) const {
    return fmt::formatter<std::string_view>::format(script.text(), context);
  }
};
