// The texts that a capture reads, as tokens: each alone, numbered from 0 in their order, empty ones counted, since what
// is kept of a text depends on its number.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/text_tokenizer.h"

namespace headscope {

// Files of text, or the documents of the embedded language, which never end.
struct TextSource {
  std::vector<std::filesystem::path> files;
  std::string text_column;
  std::optional<std::uint64_t> language = {};  // its seed; then there are no files
  std::optional<double> validation_share =
      {};  // only the texts that a training with this share held out (data/split.h)
};

struct TextLimits {
  std::int64_t tokens = 0;  // of a text; what is longer is cut
  std::optional<std::int64_t> texts;
};

// Returns false to stop. Texts without a token are not visited.
using OnTokens = std::function<bool(std::int64_t example_id, const std::vector<std::uint32_t>& tokens)>;

// Throws Error(Fault::input) with file and line when a file is not as expected.
void for_each_tokenized(const TextSource& source, TextTokenizer& tokenizer, const TextLimits& limits,
                        const OnTokens& visit);

// All of them, read once before anything is computed: a damaged line at the end of a file shows now.
struct TextSurvey {
  std::int64_t texts = 0;     // with a token at least
  std::int64_t at_limit = 0;  // as long as the limit: cut, or just as long
  std::int64_t tokens = 0, longest = 0;
  std::uint32_t largest_id = 0;
  std::string hash;  // of the numbers and tokens of all
};
TextSurvey survey(const TextSource& source, TextTokenizer& tokenizer, const TextLimits& limits);

}  // namespace headscope
