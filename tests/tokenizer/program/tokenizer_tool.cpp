// tokenizer_tool TOKENIZER: answers each line of standard input with a line, for test_against_library.py.
//   {"text": "...", "special": true}  ->  [1, 2]
//   {"ids": [1, 2], "skip": true}     ->  "..."
// tokenizer_tool newer: the code points that PCRE2's tables do not know, as a list of [first, last].
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "tokenizer/newer_code_points.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"

namespace {

using namespace headscope;
using nlohmann::json;

void print_newer() {
  NewerCodePoints newer;
  json ranges = json::array();
  for (char32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::string text;
    append_utf8(code_point, text);
    if (newer.count(text) == 0) continue;
    const auto number = static_cast<std::uint32_t>(code_point);
    if (!ranges.empty() && ranges.back()[1] == number - 1)
      ranges.back()[1] = number;
    else
      ranges.push_back({number, number});
  }
  fmt::print("{}\n", ranges.dump());
}

void answer_lines(const char* path) {
  Tokenizer tokenizer = open_tokenizer(path);
  std::string line;
  while (std::getline(std::cin, line)) {
    const json asked = json::parse(line);
    if (asked.contains("text"))
      fmt::print("{}\n", json(tokenizer.encode(asked["text"].get<std::string>(),
                                               {.add_special = asked["special"], .place = "text"}))
                             .dump());
    else
      fmt::print("{}\n", json_line(tokenizer.decode(asked["ids"].get<std::vector<std::uint32_t>>(), asked["skip"])));
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 2 && std::string(argv[1]) == "newer")
      print_newer();
    else if (argc == 2)
      answer_lines(argv[1]);
    return argc == 2 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
