#include "capture/texts.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "data/language.h"
#include "data/split.h"
#include "formats/content_hash.h"

namespace headscope {
namespace {

void for_each_source_text(const TextSource& source, const OnDocument& visit) {
  const OnDocument visit_held_out = [&](std::string_view text, const DocumentPlace& place) {
    const bool left_out = source.validation_share && !in_validation(split_hash(text), *source.validation_share);
    return left_out || visit(text, place);
  };
  if (source.language) {
    const Language language(*source.language);
    for (std::uint64_t index = 0; visit_held_out(language.document(index).text, {}); ++index) continue;
    return;
  }
  for (const std::filesystem::path& file : source.files)
    if (!for_each_document(file, source.text_column, visit_held_out, EmptyDocuments::visited)) return;
}

}  // namespace

void for_each_tokenized(const TextSource& source, TextTokenizer& tokenizer, const TextLimits& limits,
                        const OnTokens& visit) {
  std::int64_t example_id = 0;
  std::vector<std::uint32_t> tokens;
  for_each_source_text(source, [&](std::string_view text, const DocumentPlace& place) {
    if (example_id >= std::numeric_limits<std::int32_t>::max())
      fail_input("more than {} texts; a capture numbers them with 32 bits: set max_documents", example_id);
    tokens.clear();
    tokenizer.encode_alone(text, place, static_cast<std::size_t>(limits.tokens), tokens);
    if (!tokens.empty() && !visit(example_id, tokens)) return false;
    ++example_id;
    return !limits.texts || example_id < *limits.texts;
  });
}

TextSurvey survey(const TextSource& source, TextTokenizer& tokenizer, const TextLimits& limits) {
  TextSurvey found;
  ContentHash hash;
  for_each_tokenized(source, tokenizer, limits, [&](std::int64_t example_id, const std::vector<std::uint32_t>& tokens) {
    const std::int64_t length = std::ssize(tokens), head[2] = {example_id, length};
    hash.add(std::as_bytes(std::span(head)));
    hash.add(std::as_bytes(std::span(tokens)));
    ++found.texts;
    found.tokens += length;
    found.longest = std::max(found.longest, length);
    if (length == limits.tokens) ++found.at_limit;
    found.largest_id = std::max(found.largest_id, *std::max_element(tokens.begin(), tokens.end()));
    return true;
  });
  found.hash = hash.hex();
  return found;
}

}  // namespace headscope
