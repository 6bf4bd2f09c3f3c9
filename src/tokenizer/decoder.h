// The steps from pieces back to text.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "tokenizer/text_pattern.h"

namespace headscope {

namespace decoder {

struct ByteLevel {};     // characters to the bytes that they stand for (byte_characters.h)
struct ByteFallback {};  // pieces <0xNN> to the bytes; bytes that are not UTF-8 become U+FFFD, one each
struct Fuse {};          // all pieces to one
struct Metaspace {
  std::string replacement = "\xE2\x96\x81";  // becomes a space
  bool prepended = true;                     // and vanishes from the first piece
};
struct Replace {
  TextPattern pattern;
  std::string content;
};
struct Strip {
  std::string content;              // one character: at most so many of it are removed from each piece
  std::size_t start = 0, stop = 0;  // at its start and its end
};
struct WordEnd {
  std::string suffix;  // becomes a space, and vanishes from the last piece
};

using Step = std::variant<ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, WordEnd>;

}  // namespace decoder

// The bytes of one piece in the middle of a text: what decode_pieces would take from the ends of a text stays.
std::string bytes_of_piece(const std::vector<decoder::Step>& steps, std::string piece);

// The text of the pieces.
std::string decode_pieces(std::vector<decoder::Step>& steps, std::vector<std::string> pieces);

}  // namespace headscope
