// The one exception type. An error is one line: what, where (file, key, row), what was expected, what to do.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace headscope {

enum class Fault {
  runtime = 1,        // failed while running
  input = 2,          // wrong usage or bad input
  interrupted = 130,  // stopped by a signal; state is saved
};

// Of a process that ended with this code.
inline Fault fault_of(int exit_code) {
  const auto fault = static_cast<Fault>(exit_code);
  return fault == Fault::input || fault == Fault::interrupted ? fault : Fault::runtime;
}

// Control characters become spaces (those beyond ASCII, too: U+0080 to U+009F), those at the end are removed.
inline std::string on_one_line(std::string text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (byte(i) < ' ' || byte(i) == 0x7F) text[i] = ' ';
    if (byte(i) == 0xC2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xA0) text[i] = text[i + 1] = ' ';
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

// Text of a file or a library for a message: at most `longest` bytes of it, and no part of a character of UTF-8.
inline std::string excerpt(std::string_view text, std::size_t longest = 300) {
  if (text.size() <= longest) return std::string(text);
  const auto continues = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80; };
  constexpr std::size_t most_bytes = 4;  // of a character
  for (std::size_t cut = longest; cut + most_bytes > longest && cut > 0; --cut)
    if (!continues(cut)) return fmt::format("{} ...", text.substr(0, cut));
  return fmt::format("{} ...", text.substr(0, longest));
}

// An error is always one line, also where a name or a library's message holds several.
class Error : public std::runtime_error {
 public:
  Error(Fault fault, std::string message) : std::runtime_error(on_one_line(std::move(message))), fault_(fault) {}
  [[nodiscard]] Fault fault() const { return fault_; }
  [[nodiscard]] int exit_code() const { return static_cast<int>(fault_); }

 private:
  Fault fault_;
};

// Bad input or usage: exit code 2.
template <class... Args>
[[noreturn]] void fail_input(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Fault::input, fmt::format(format, std::forward<Args>(args)...));
}

// Something failed while running (a disk, a child program): exit code 1.
template <class... Args>
[[noreturn]] void fail_runtime(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(Fault::runtime, fmt::format(format, std::forward<Args>(args)...));
}

// An invariant of our own code. The message carries the values: HEADSCOPE_CHECK(n > 0, "n = {}", n).
#define HEADSCOPE_CHECK(condition, ...)                                                                          \
  do {                                                                                                           \
    if (!(condition))                                                                                            \
      ::headscope::fail_runtime("internal check failed: {} ({}) at {}:{}", #condition, fmt::format(__VA_ARGS__), \
                                __FILE__, __LINE__);                                                             \
  } while (false)

}  // namespace headscope
