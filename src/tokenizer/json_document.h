// A tokenizer.json as it is parsed: the two large lists apart, the rest as JSON. Nothing is interpreted yet.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/bpe.h"

namespace headscope {

struct TokenizerDocument {
  nlohmann::json rest;           // without model.vocab and model.merges
  std::vector<BpePiece> pieces;  // model.vocab, where it is an object
  std::vector<std::pair<std::string, std::string>> merges;
  bool has_pieces = false, has_merges = false;
  bool vocabulary_is_list = false;  // as Unigram models have it; the list is skipped
};

// Throws Error(Fault::input) naming `origin` when the text is not JSON, a key comes twice in an object, values are
// nested deeper than in any tokenizer, or the vocabulary or the merges are not of the expected kind.
TokenizerDocument parse_tokenizer_document(std::string_view text, const std::string& origin);

}  // namespace headscope
