// Text to token ids and back, as published models do it: added tokens are found first, the text between them is
// normalised and cut into words, words become ids by byte pair encoding, and a template adds tokens such as the one
// that begins a text. The ids are those of the `tokenizers` library for the same file.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/decoder.h"
#include "tokenizer/newer_code_points.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"

namespace headscope {

// A place in a template: the text's ids, or tokens that are added.
struct TemplateText {};
using TemplatePart = std::variant<TemplateText, std::vector<std::uint32_t>>;
using Template = std::vector<TemplatePart>;

// What a tokenizer is made of. tokenizer_json.h reads it from a file.
struct TokenizerParts {
  BpeParts bpe;
  std::vector<AddedToken> added;  // by content; special ones may be pieces of the vocabulary, too
  std::vector<normalizer::Step> normalizer;
  std::vector<pre_tokenizer::Step> pre_tokenizer;
  std::vector<Template> templates;                    // applied one after another
  std::optional<std::vector<decoder::Step>> decoder;  // none: pieces with a space between them
  std::string begin_of_text, end_of_text;             // contents of tokens; empty: not known
  std::vector<std::string> warnings;                  // what the file says and is not done
};

struct EncodeOptions {
  bool add_special = true;          // apply the templates; special tokens in the text are found in any case
  std::string_view place = "text";  // names the text in errors: "x.jsonl: line 3"
  std::size_t most = std::numeric_limits<std::size_t>::max();  // ids; a text is cut at its end, templates stay whole
};

// What was met so far that may make ids differ from other programs.
struct EncodeCounts {
  std::int64_t newer_code_points = 0;  // newer_code_points.h; 0 where words do not depend on it
  std::int64_t vanished = 0;           // characters that are no piece, of a vocabulary without an unknown piece
};

// Not for two threads at a time: it has working memory and remembers words.
class Tokenizer {
 public:
  // `name` says which one it is: in messages and token files. Throws Error(Fault::input) when the parts do not fit
  // together.
  Tokenizer(TokenizerParts parts, std::string name);

  // Appends the ids of the text. Throws Error(Fault::input) with place and byte when it is not UTF-8. n log n in the
  // length of the text.
  void encode(std::string_view text, std::vector<std::uint32_t>& ids, const EncodeOptions& options = {});
  [[nodiscard]] std::vector<std::uint32_t> encode(std::string_view text, const EncodeOptions& options = {});

  // Ids that are none are left out.
  [[nodiscard]] std::string decode(std::span<const std::uint32_t> ids, bool skip_special = true);

  // The bytes that one token stands for in the middle of a text; an added token's are its content. They may be a part
  // of a character. Nothing for an id that is none.
  [[nodiscard]] std::optional<std::string> token_bytes(std::uint32_t id) const;

  [[nodiscard]] const std::string& name() const { return name_; }
  // The largest id, and 1.
  [[nodiscard]] std::int64_t vocabulary() const { return vocabulary_; }
  // The same without special tokens behind all pieces: Gemma 3 has one for images, which its text models lack.
  [[nodiscard]] std::int64_t text_vocabulary() const { return text_vocabulary_; }
  [[nodiscard]] std::optional<std::uint32_t> id_of(std::string_view piece) const;
  [[nodiscard]] std::optional<std::string_view> piece(std::uint32_t id) const;
  [[nodiscard]] std::optional<std::uint32_t> begin_of_text() const { return begin_of_text_; }
  [[nodiscard]] std::optional<std::uint32_t> end_of_text() const { return end_of_text_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  [[nodiscard]] EncodeCounts counts() const;

 private:
  void add_tokens(std::vector<AddedToken> added);
  void build_finders();
  void check_templates() const;
  [[nodiscard]] std::size_t added_by_templates() const;
  std::optional<std::uint32_t> border(std::string_view content);
  void encode_normalized(NormalizedText text, std::vector<std::uint32_t>& ids);
  void encode_words(NormalizedText text, std::vector<std::uint32_t>& ids);

  std::string name_;
  Bpe bpe_;
  std::vector<AddedToken> added_;                                 // the place of each does not change
  std::unordered_map<std::string_view, std::size_t> by_content_;  // into added_
  std::unordered_map<std::uint32_t, std::size_t> by_id_;
  std::vector<std::string> written_;  // what decoding writes for each: normalised, as it was found
  std::vector<normalizer::Step> normalizer_;
  PreTokenizer pre_tokenizer_;
  std::vector<Template> templates_;
  std::optional<std::vector<decoder::Step>> decoder_;
  std::optional<std::uint32_t> begin_of_text_, end_of_text_;
  std::vector<std::string> warnings_;
  AddedTokenFinder in_text_, in_normalized_;
  std::int64_t vocabulary_ = 0, text_vocabulary_ = 0;
  NewerCodePoints newer_;
  std::int64_t newer_count_ = 0;
  std::vector<TextRange> words_;
};

}  // namespace headscope
