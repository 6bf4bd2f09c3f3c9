#include "data/language.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "core/error.h"
#include "data/tokens.h"

namespace headscope {
namespace {

constexpr std::uint64_t lexicon_seed = 20240229;  // any number; the words are part of the language's definition
constexpr std::string_view consonants = "bdfgklmnprstvzhj";
constexpr std::string_view vowels = "aeiou";

// Makes pronounceable words.
class WordMaker {
 public:
  enum class Form { stem, full, varied };  // CVC, CVCV, CV and up to three letters more

  // `count` words whose first two letters are not in `taken`, which they enter.
  std::vector<std::string> words(std::size_t count, Form form, std::set<std::string>& taken) {
    HEADSCOPE_CHECK(taken.size() + count <= consonants.size() * vowels.size(), "{} more words after {}", count,
                    taken.size());
    std::vector<std::string> made;
    while (made.size() < count) {
      std::string word = syllable();
      if (!taken.insert(word).second) continue;
      switch (form) {
        case Form::stem:
          word += letter(consonants);
          break;
        case Form::full:
          word += syllable();
          break;
        case Form::varied: {
          const char last = letter(consonants);  // drawn first; in one expression the order would be the compiler's
          const std::string more = syllable() + last;
          word += more.substr(0, generator_.integers(4));
        }
      }
      made.push_back(std::move(word));
    }
    return made;
  }

 private:
  char letter(std::string_view letters) { return letters[generator_.integers(letters.size())]; }
  std::string syllable() {
    const char first = letter(consonants);
    return {first, letter(vowels)};
  }

  NumpyGenerator generator_{lexicon_seed};
};

Lexicon make_lexicon(const GrammarShape& shape) {
  using Form = WordMaker::Form;
  WordMaker maker;
  Lexicon lexicon;
  std::set<std::string> in_sentences, names, values, nouns;
  lexicon.verbs = maker.words(shape.verbs, Form::stem, in_sentences);
  lexicon.fillers = maker.words(shape.fillers, Form::varied, in_sentences);
  lexicon.names = maker.words(shape.names, Form::full, names);
  lexicon.values = maker.words(shape.values, Form::full, values);
  lexicon.nouns = maker.words(shape.nouns, Form::stem, nouns);
  for (std::string& name : lexicon.names) name[0] = static_cast<char>(name[0] - 'a' + 'A');
  for (std::size_t i = 0; i < shape.fillers; ++i) lexicon.filler_weights.push_back(1.0 / static_cast<double>(i + 1));
  return lexicon;
}

// Writes one document.
class Writer {
 public:
  Writer(const GrammarShape& shape, const Lexicon& lexicon, Choices& choices)
      : shape_(shape), lexicon_(lexicon), choices_(choices), unstated_(lexicon.names.size()) {
    for (std::size_t i = 0; i < unstated_.size(); ++i) unstated_[i] = i;
  }

  std::string document() {
    for (std::size_t sentences = 1;; ++sentences) {
      sentence();
      if (sentences == shape_.most_sentences) break;
      if (sentences < shape_.fewest_sentences) continue;
      // Every number of sentences is equally likely.
      const std::array<double, 2> end_or_not = {1, static_cast<double>(shape_.most_sentences - sentences)};
      if (choices_.pick(end_or_not) == 0) break;
    }
    return std::move(text_);
  }

 private:
  struct Fact {
    std::size_t name, value;
  };

  void sentence() {
    const std::array<double, n_sentence_kinds> weights = {
        unstated_.empty() ? 0.0 : 3.0, facts_.empty() ? 0.0 : 4.0, 3, 2, 1.5, phrases_.empty() ? 0.0 : 2.0};
    switch (static_cast<SentenceKind>(choices_.pick(weights))) {
      case SentenceKind::fact:
        fact();
        break;
      case SentenceKind::question:
        question();
        break;
      case SentenceKind::agreement:
        agreement();
        break;
      case SentenceKind::brackets:
        brackets(1);
        break;
      case SentenceKind::phrase:
        phrase();
        break;
      case SentenceKind::repetition:
        text_ += "again " + phrases_[choices_.pick_uniform(phrases_.size())];
        break;
    }
    text_ += ".\n";
  }

  // "Mera: tolu": a name is given a value once, so a question has one answer.
  void fact() {
    const std::size_t which = choices_.pick_uniform(unstated_.size());
    const Fact fact{unstated_[which], choices_.pick_uniform(lexicon_.values.size())};
    unstated_.erase(unstated_.begin() + static_cast<std::ptrdiff_t>(which));
    facts_.push_back(fact);
    text_ += lexicon_.names[fact.name] + ": " + lexicon_.values[fact.value];
  }

  // "ask Mera: tolu"
  void question() {
    const Fact fact = facts_[choices_.pick_uniform(facts_.size())];
    text_ += "ask " + lexicon_.names[fact.name] + ": " + lexicon_.values[fact.value];
  }

  // "the dalo ri kum gata" or "the dali ri kum gate": the verb's last letter follows the noun's.
  void agreement() {
    const std::size_t noun = choices_.pick_uniform(lexicon_.nouns.size());
    const bool plural = choices_.pick_uniform(2) == 1;
    text_ += "the " + lexicon_.nouns[noun] + (plural ? "i" : "o");
    const std::size_t between = 1 + choices_.pick_uniform(shape_.most_between);
    for (std::size_t i = 0; i < between; ++i) text_ += " " + filler();
    text_ += " " + lexicon_.verbs[choices_.pick_uniform(lexicon_.verbs.size())] + (plural ? "e" : "a");
  }

  // "(ri [kum ta] so)"
  void brackets(std::size_t depth) {
    constexpr std::array<std::string_view, 3> kinds = {"()", "[]", "{}"};
    const std::string_view kind = kinds[choices_.pick_uniform(kinds.size())];
    text_ += kind[0];
    for (std::size_t items = 0;; ++items) {
      const bool room = items < shape_.most_items;
      const std::array<double, 3> weights = {room ? 3.0 : 0.0, room && depth < shape_.deepest ? 2.0 : 0.0,
                                             items > 0 ? 2.0 : 0.0};
      const std::size_t next = choices_.pick(weights);
      if (next == 2) break;
      if (items > 0) text_ += ' ';
      if (next == 0)
        text_ += filler();
      else
        brackets(depth + 1);
    }
    text_ += kind[1];
  }

  // "say kum ri ta": words that may be said again.
  void phrase() {
    const std::size_t words =
        shape_.fewest_phrase_words + choices_.pick_uniform(shape_.most_phrase_words - shape_.fewest_phrase_words + 1);
    std::string phrase = filler();
    for (std::size_t i = 1; i < words; ++i) phrase += " " + filler();
    text_ += "say " + phrase;
    // A phrase is listed once: with two entries, two choices would give the same text.
    if (std::find(phrases_.begin(), phrases_.end(), phrase) == phrases_.end()) phrases_.push_back(phrase);
  }

  const std::string& filler() { return lexicon_.fillers[choices_.pick(lexicon_.filler_weights)]; }

  const GrammarShape& shape_;
  const Lexicon& lexicon_;
  Choices& choices_;
  std::vector<std::size_t> unstated_;  // names without a value so far
  std::vector<Fact> facts_;
  std::vector<std::string> phrases_;
  std::string text_;
};

}  // namespace

Grammar::Grammar(const GrammarShape& shape) : shape_(shape), lexicon_(make_lexicon(shape)) {}

std::string Grammar::document(Choices& choices) const {
  return Writer(shape_, lexicon_, choices).document();
}

std::size_t Choices::pick(std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  HEADSCOPE_CHECK(total > 0, "{} weights that sum to {}", weights.size(), total);
  const std::size_t chosen = choose(weights, total);
  HEADSCOPE_CHECK(weights[chosen] > 0, "choice {} of {} has no weight", chosen, weights.size());
  nats_ -= std::log(weights[chosen] / total);
  return chosen;
}

std::size_t Choices::pick_uniform(std::size_t count) {
  return pick(std::vector<double>(count, 1.0));
}

std::size_t RandomChoices::choose(std::span<const double> weights, double total) {
  double left = generator_.uniform() * total;
  std::size_t last = 0;  // taken when rounding leaves a little more than the sum of all weights
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    if (left < weights[i]) return i;
    left -= weights[i];
    last = i;
  }
  return last;
}

LanguageDocument Language::document(std::uint64_t index) const {
  RandomChoices choices{NumpyGenerator(mixed_seed(seed_, index))};
  LanguageDocument document;
  document.text = grammar_.document(choices);
  document.nats = choices.nats();
  return document;
}

double language_unigram_entropy() {
  constexpr std::uint64_t documents = 4096;
  constexpr std::uint64_t seed = 0x5eed;  // not one that a run would use
  const Language language(seed);
  std::array<double, byte_tokenizer::vocabulary> counts{};
  double tokens = 0;
  for (std::uint64_t i = 0; i < documents; ++i) {
    const LanguageDocument document = language.document(i);
    for (const char c : document.text) ++counts[static_cast<unsigned char>(c)];
    ++counts[byte_tokenizer::start];
    ++counts[byte_tokenizer::end];
    tokens += static_cast<double>(document.text.size() + 2);
  }
  double entropy = 0;
  for (const double count : counts)
    if (count > 0) entropy -= count / tokens * std::log(count / tokens);
  return entropy;
}

}  // namespace headscope
