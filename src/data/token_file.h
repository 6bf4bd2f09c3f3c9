// Flat token files: x.bin holds ids, 16 or 32 bits each, little-endian, and x.json beside it says what they are:
//   {"type": "u16", "vocabulary": 49152, "tokenizer": "...", "end_of_text": 0, "tokens": 1000, "documents": 3}
// begin_of_text is optional; so are tokens and documents, which are checked where they are given.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/atomic_file.h"
#include "core/regular_file.h"
#include "data/text_tokenizer.h"
#include "data/tokens.h"

namespace headscope {

struct TokenFileInfo {
  bool wide = false;  // u32
  std::int64_t vocabulary = 0;
  std::string tokenizer;
  std::uint32_t end_of_text = 0;
  std::optional<std::uint32_t> begin_of_text;
  std::optional<std::int64_t> tokens, documents;
};

// `origin` names the text in errors. Throws Error(Fault::input).
TokenFileInfo parse_token_info(std::string_view text, const std::string& origin);
std::string to_text(const TokenFileInfo& info);

// x.json of x.bin.
std::filesystem::path token_info_file(const std::filesystem::path& file);

struct TokenFile {
  std::string origin;
  TokenFileInfo info;
  std::shared_ptr<const MappedFile> mapped;
  TokenSpan tokens;
};

// Throws Error(Fault::input) when a file is missing or damaged, or the two do not agree. Ids are not checked.
TokenFile open_token_file(const std::filesystem::path& file);

// Throws Error(Fault::input) naming file, token and byte when an id of the range is not in the vocabulary.
void check_token_ids(const TokenFile& file, TokenRange range);

// Writes x.bin and then x.json; without finish() there is neither.
class TokenFileWriter {
 public:
  // Throws Error(Fault::input) when the name does not end in .bin, or files are there and `overwrite` is false, or the
  // tokenizer, which must live as long, has no token that ends a text.
  TokenFileWriter(const std::filesystem::path& file, bool overwrite, TextTokenizer& tokenizer);

  // `place` names the document in errors, which are those of TextTokenizer::encode_document.
  void add(std::string_view document, const DocumentPlace& place);
  void finish();

  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  [[nodiscard]] std::int64_t documents() const { return documents_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }  // of the documents

 private:
  void flush();

  std::filesystem::path file_;
  TextTokenizer& tokenizer_;
  TokenFileInfo info_;
  AtomicFile written_;
  std::vector<std::uint32_t> pending_;
  std::int64_t tokens_ = 0, documents_ = 0, bytes_ = 0;
};

}  // namespace headscope
