// A gnuplot script without its strings and numbers: what is left is what the script does. Written after gnuplot's own
// scanner (src/scanner.c and load_file in src/misc.c of gnuplot 5.4), not after the code under test.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace headscope::test {

struct ScriptSkeleton {
  std::vector<std::string> tokens;  // a string is S, a number N, the end of a line or statement ;
  std::vector<std::string> faults;  // what no script of ours may hold
};

class SkeletonReader {
 public:
  explicit SkeletonReader(std::string_view script) {
    // gnuplot joins lines before it looks for strings.
    for (std::size_t i = 0; i < script.size(); ++i) {
      if (script.substr(i, 2) == "\\\n")
        ++i;
      else
        text_ += script[i];
    }
  }

  ScriptSkeleton read() {
    while (place_ < text_.size()) read_token();
    return std::move(skeleton_);
  }

 private:
  [[nodiscard]] char at(std::size_t place) const { return place < text_.size() ? text_[place] : '\n'; }
  void fault(const std::string& what) { skeleton_.faults.push_back(what + ": " + text_.substr(place_, 40)); }
  void add(std::string token) {
    if (token == "S" && !skeleton_.tokens.empty() && skeleton_.tokens.back() == "S") fault("a string after a string");
    if (token == "!" && (skeleton_.tokens.empty() || skeleton_.tokens.back() == ";")) fault("a shell command");
    skeleton_.tokens.push_back(std::move(token));
  }

  void read_token() {
    const char c = at(place_);
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      add(";");
      ++place_;
    } else if (c == ' ') {
      ++place_;
    } else if (c == '#') {
      while (at(place_) != '\n') ++place_;
    } else if (c == '\'' || c == '"') {
      read_string(c);
    } else if (std::isdigit(code) || (c == '.' && std::isdigit(static_cast<unsigned char>(at(place_ + 1))))) {
      read_number();
    } else if (std::isalpha(code) || c == '_') {
      read_name();
    } else {
      if (c == '`') fault("a command in backticks");
      if (c == '@') fault("a macro");
      if (code < 0x20 || code >= 0x7f) fault("a character that is no token");
      add(std::string(1, c));
      ++place_;
    }
  }

  void read_string(char quote) {
    const std::size_t first = place_;
    while (at(++place_) != quote) {
      const char c = at(place_);
      if (c == '\n') {
        place_ = first;
        fault("a string that does not end");
        while (at(place_) != '\n') ++place_;
        return;
      }
      if (static_cast<unsigned char>(c) < 0x20) fault("a control character in a string");
      if (quote == '"') {
        if (c == '\\') ++place_;
        if (c == '`') fault("a command in backticks in a string");
        if (c == '\'') fault("a quote that gnuplot's search for macros misreads");
      } else if (at(place_ + 1) == '\'' && at(place_ + 2) == '\'') {
        place_ += 2;  // gnuplot takes in a doubled quote after another character only
      }
    }
    ++place_;
    add("S");
  }

  void read_number() {
    const auto digits = [&] {
      while (std::isdigit(static_cast<unsigned char>(at(place_)))) ++place_;
    };
    digits();
    if (at(place_) == '.') {
      ++place_;
      digits();
    }
    if (at(place_) == 'e') {
      ++place_;
      if (at(place_) == '+' || at(place_) == '-') ++place_;
      digits();
    }
    add("N");
  }

  void read_name() {
    const std::size_t first = place_;
    while (std::isalnum(static_cast<unsigned char>(at(place_))) || at(place_) == '_') ++place_;
    const std::string name = text_.substr(first, place_ - first);
    if (name == "nan" || name == "inf") fault("a number that is none");
    add(name);
  }

  std::string text_;
  std::size_t place_ = 0;
  ScriptSkeleton skeleton_;
};

inline ScriptSkeleton skeleton_of(std::string_view script) {
  return SkeletonReader(script).read();
}

}  // namespace headscope::test
