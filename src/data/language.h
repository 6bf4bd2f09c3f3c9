// The embedded language: documents that give every kind of attention head something to learn, and whose entropy is
// known, so that a training run can be compared with the best loss there is.
#pragma once

#include <cstdint>
#include <string>

#include "data/grammar.h"

namespace headscope {

struct LanguageDocument {
  std::string text;
  double nats = 0;  // exactly -log of the document's probability, its end included
};

class Language {
 public:
  explicit Language(std::uint64_t seed) : seed_(seed) {}
  // Depends on (seed, index) alone.
  [[nodiscard]] LanguageDocument document(std::uint64_t index) const;
  [[nodiscard]] const Grammar& grammar() const { return grammar_; }

 private:
  std::uint64_t seed_;
  Grammar grammar_;
};

// Nats per token of the byte tokenizer, document start and end-of-text included.
struct LanguageEntropy {
  double unigram = 0;      // of a reader who knows only how frequent each token is
  double conditional = 0;  // of a reader who knows the language: no model can do better
};

// Of the language, by 4096 of its documents (the sampling error is below half a percent).
LanguageEntropy language_entropy();

}  // namespace headscope
