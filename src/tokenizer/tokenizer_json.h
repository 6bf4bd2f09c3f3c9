// tokenizer.json, the format of the `tokenizers` library, to the parts of a tokenizer. Byte pair encoding only; a kind
// of model, normaliser, pre-tokenizer, post-processor or decoder that is not known is an error that names it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace headscope {

// `origin` names the text in errors. Throws Error(Fault::input). Tokens that begin and end a text are not in this file.
TokenizerParts parse_tokenizer_json(std::string_view text, const std::string& origin);

// The content of eos_token and bos_token of tokenizer_config.json; empty where it has none.
struct TextBorders {
  std::string begin, end;
};
TextBorders parse_tokenizer_config(std::string_view text, const std::string& origin);

// A tokenizer.json, the folder of a model that holds one, or a GGUF file (gguf_tokenizer.h). tokenizer_config.json
// beside tokenizer.json, if it is there, names the tokens that begin and end a text. Throws Error(Fault::input) naming
// the file.
Tokenizer open_tokenizer(const std::filesystem::path& path);

}  // namespace headscope
