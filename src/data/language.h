// The embedded language: documents that give every kind of attention head something to learn, and whose entropy is
// known, so that a training run can be compared with the best loss there is. Its grammar says how choices become text:
// different choices give different texts, so the probability of the choices is the probability of the text
// (docs/data.md has the grammar as a table).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"

namespace headscope {

// Random choices that sum up -log p of every choice: a text that is made from them has a known probability.
class Choices {
 public:
  virtual ~Choices() = default;

  // An index, with probability proportional to its weight; weights are not negative and one of them is positive.
  std::size_t pick(std::span<const double> weights);
  std::size_t pick_uniform(std::size_t count);

  // -log of the probability of all choices so far, in nats.
  [[nodiscard]] double nats() const { return nats_; }

 protected:
  virtual std::size_t choose(std::span<const double> weights, double total) = 0;

 private:
  double nats_ = 0;
};

class RandomChoices final : public Choices {
 public:
  explicit RandomChoices(const NumpyGenerator& generator) : generator_(generator) {}

 private:
  std::size_t choose(std::span<const double> weights, double total) override;

  NumpyGenerator generator_;
};

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

// The loss of a model that knows only how frequent each token is: nats per token of the byte tokenizer, document start
// and end-of-text included. Estimated from 4096 documents; the sampling error is below half a percent.
double language_unigram_entropy();

}  // namespace headscope
