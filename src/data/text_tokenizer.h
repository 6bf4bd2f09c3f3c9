// The tokenizer that a user names: the bytes of a text, or that of a published model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/console.h"
#include "data/documents.h"
#include "tokenizer/tokenizer.h"

namespace headscope {

// Not for two threads at a time.
class TextTokenizer {
 public:
  // `name`: "bytes", a tokenizer.json, a folder that holds one, or a GGUF file. Throws Error(Fault::input).
  explicit TextTokenizer(const std::string& name);

  // Appends the tokens of one text. `place` names it in errors: Error(Fault::input) when it is not UTF-8 and the
  // tokenizer is not that of bytes.
  void encode(std::string_view text, bool add_special, std::string_view place, std::vector<std::uint32_t>& tokens);

  // The same for a document of a corpus: with the token that begins a text where the tokenizer adds one, and always
  // with the one that ends it. Throws Error(Fault::input) when the tokenizer has none.
  void encode_document(std::string_view document, const DocumentPlace& place, std::vector<std::uint32_t>& tokens);

  // The same for a text that a model reads alone: with the tokens that the tokenizer adds, of which there may be none,
  // and cut to `most` tokens.
  void encode_alone(std::string_view text, const DocumentPlace& place, std::size_t most,
                    std::vector<std::uint32_t>& tokens);

  // The piece of a token as it stands in the vocabulary; of a byte, its number: "<0x41>".
  [[nodiscard]] std::string piece(std::uint32_t token) const;

  // The text of a token for people: valid UTF-8, a byte that is a part of a character as its number, ⟨0xE2⟩. The two
  // tokens around the bytes of a text are ⟨start⟩ and ⟨end⟩; an id that is none is ⟨17⟩.
  [[nodiscard]] std::string shown(std::uint32_t token) const;

  [[nodiscard]] const std::string& name() const { return name_; }  // the same for the same tokenizer, wherever it is
  [[nodiscard]] std::int64_t vocabulary() const { return vocabulary_; }
  [[nodiscard]] std::int64_t text_vocabulary() const {
    return tokenizer_ ? tokenizer_->text_vocabulary() : vocabulary_;
  }
  [[nodiscard]] std::uint32_t end_of_text() const;
  [[nodiscard]] std::optional<std::uint32_t> begin_of_text() const;

  // Says what may make tokens differ from those of other programs.
  void warn(Console& console) const;

 private:
  void check_encoding(std::string_view document, const DocumentPlace& place) const;

  std::string given_, name_;
  std::int64_t vocabulary_ = 0;
  std::unique_ptr<Tokenizer> tokenizer_;  // null: bytes
};

}  // namespace headscope
