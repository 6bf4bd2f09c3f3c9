// Text files, or documents of the embedded language, to one token file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/console.h"

namespace headscope {

struct TokenizeJob {
  std::vector<std::filesystem::path> inputs;  // files and folders of text
  std::optional<std::int64_t>
      language_tokens;  // instead: whole documents of the embedded language, at least so many tokens
  std::uint64_t language_seed = 0;
  std::filesystem::path out;
  std::string tokenizer = "bytes";
  std::string text_column = "text";  // as most published corpora have it
  bool overwrite = false;
};

struct TokenizeOutcome {
  std::int64_t documents = 0, tokens = 0, bytes = 0;
  std::optional<double> nats;  // of the embedded language: -log p of all documents
  double seconds = 0;
};

// Throws Error(Fault::input) as document_files, for_each_document and TokenFileWriter do, and when there is no text;
// then nothing is written.
TokenizeOutcome tokenize(const TokenizeJob& job, Console& console);

}  // namespace headscope
