// Code points that PCRE2's tables of Unicode do not know: a split pattern takes them for nothing, while a program with
// newer tables may take them for letters.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <string_view>

namespace headscope {

class NewerCodePoints {
 public:
  // How many code points of the text have no meaning in the tables. Those that never will have one do not count.
  // `text` is valid UTF-8.
  std::int64_t count(std::string_view text);

 private:
  static constexpr char32_t block = 256;
  bool is_newer(char32_t code_point);

  // One bit a code point; a block is asked for when a text first holds one of its code points.
  std::array<std::shared_ptr<const std::bitset<block>>, 0x110000 / block> blocks_;
};

}  // namespace headscope
