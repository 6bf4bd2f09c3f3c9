// How a byte-level tokenizer of a GGUF file cuts text into words. The file has no patterns: a name stands for them
// (tokenizer.ggml.pre), as llama.cpp has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"

namespace headscope {

struct GgufWords {
  std::vector<normalizer::Step> normalizer;
  std::vector<pre_tokenizer::Step> pre_tokenizer;
  bool ignore_merges = false;  // bpe.h
  bool add_begin = false;      // a text begins with the token for it, unless the file says otherwise
};

// Throws Error(Fault::input) with the known names when this is none.
GgufWords gguf_words(std::string_view name, const std::string& origin);

}  // namespace headscope
