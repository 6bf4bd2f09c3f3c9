// The tokenizer that a GGUF file holds in its metadata ("tokenizer.ggml.tokens" and others), to the parts of a
// tokenizer. Two kinds: "gpt2" (byte-level, with merges) and "llama" (sentencepiece, with scores). The ids are those of
// the tokenizer.json that the file was made of, as the `tokenizers` library gives them.
#pragma once

#include <filesystem>
#include <string>

#include "formats/gguf.h"
#include "tokenizer/tokenizer.h"

namespace headscope {

// `origin` names the file in errors. Throws Error(Fault::input) when there is no tokenizer, when its kind or the way it
// cuts text into words (tokenizer.ggml.pre) is not known, naming it and the known ones, and when lists or ids do not
// fit together.
TokenizerParts parse_gguf_tokenizer(const GgufMetadata& metadata, const std::string& origin);

// Names the tokenizer by the hash of what the file says of it, whatever the weights. Throws Error(Fault::input).
Tokenizer open_gguf_tokenizer(const std::filesystem::path& file);

}  // namespace headscope
