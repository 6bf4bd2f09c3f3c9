// The grammar of the embedded language: how choices become text. Different choices give different texts, so the
// probability of the choices is the probability of the text (docs/data.md has the grammar as a table).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "data/choices.h"

namespace headscope {

// The defaults are the language; a test makes a small one, whose documents can all be listed.
struct GrammarShape {
  // A model of four layers learns the spelling of so many words within some hundred thousand tokens.
  std::size_t fillers = 64, names = 24, values = 24, nouns = 12, verbs = 8;
  std::size_t fewest_sentences = 14, most_sentences = 22;  // 250 to 550 bytes: facts and questions in one context
  std::size_t fewest_phrase_words = 3, most_phrase_words = 5;
  std::size_t most_between = 3;  // words between a noun and its verb, at least one
  std::size_t most_items = 3;    // in a pair of brackets, at least one
  std::size_t deepest = 3;       // brackets within brackets
};

// Lower-case words of two to five letters. Within a list the first two letters differ (as they do between fillers and
// verbs, which can follow the same word), so a word is known after its second letter.
struct Lexicon {
  std::vector<std::string> fillers;  // most frequent first
  std::vector<std::string> names;    // with a capital
  std::vector<std::string> values;
  std::vector<std::string> nouns, verbs;  // without the ending that tells the number
  std::vector<double> filler_weights;     // Zipf: 1 / rank
};

enum class SentenceKind { fact, question, agreement, brackets, phrase, repetition };
inline constexpr std::size_t n_sentence_kinds = 6;

class Grammar {
 public:
  explicit Grammar(const GrammarShape& shape = {});

  [[nodiscard]] const GrammarShape& shape() const { return shape_; }
  [[nodiscard]] const Lexicon& lexicon() const { return lexicon_; }
  // One document, as the choices decide.
  [[nodiscard]] std::string document(Choices& choices) const;

 private:
  GrammarShape shape_;
  Lexicon lexicon_;
};

}  // namespace headscope
