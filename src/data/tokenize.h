// Text files, or documents of the embedded language, to one token file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/console.h"

namespace headscope {

struct TokenizeJob {
  std::vector<std::filesystem::path> inputs;  // files and folders of text
  std::optional<std::int64_t>
      language_tokens;  // instead: whole documents of the embedded language, at least so many tokens
  std::uint64_t language_seed = 0;
  std::filesystem::path out;
  std::string tokenizer = "bytes";   // or a tokenizer.json, or a folder that holds one
  std::string text_column = "text";  // as most published corpora have it
  bool overwrite = false;
};

struct TokenizeOutcome {
  std::int64_t documents = 0, tokens = 0, bytes = 0;
  std::optional<double> nats;  // of the embedded language: -log p of all documents
  double seconds = 0;
};

// One text a line, each a JSON string, to one JSON list of ids a line.
struct TokenizeLinesJob {
  std::filesystem::path lines;  // also packed (.gz, .zst)
  std::string tokenizer = "bytes";
  bool add_special = true;
};

// Calls `on_line` for each line of the file, in order: "[1, 2]\n". Throws Error(Fault::input) with file and line when a
// line is not a JSON string or not UTF-8.
void tokenize_lines(const TokenizeLinesJob& job, Console& console,
                    const std::function<void(std::string_view)>& on_line);

// Throws Error(Fault::input) as document_files, for_each_document and TokenFileWriter do, and when there is no text;
// then nothing is written.
TokenizeOutcome tokenize(const TokenizeJob& job, Console& console);

}  // namespace headscope
