// Reads a document of the embedded language and finds its probability again, from the grammar in docs/data.md alone:
// nothing of the code that writes documents is used but the lists of words.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "data/language.h"

namespace headscope::test {

class LanguageReader {
 public:
  LanguageReader(const Grammar& grammar, std::string_view text)
      : shape_(grammar.shape()), words_(grammar.lexicon()), text_(text) {
    for (std::size_t i = 0; i < shape_.fillers; ++i) zipf_ += 1.0 / static_cast<double>(i + 1);
  }

  // -log p of the whole text; throws std::runtime_error when it is not a document.
  double nats() {
    std::size_t sentences = 0;
    while (!text_.empty()) {
      sentence();
      ++sentences;
    }
    if (sentences < shape_.fewest_sentences || sentences > shape_.most_sentences) fail("number of sentences");
    chance(1.0 / static_cast<double>(shape_.most_sentences - shape_.fewest_sentences + 1));
    return nats_;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(what + " before: " + std::string(text_.substr(0, 40)));
  }
  void chance(double p) { nats_ -= std::log(p); }
  void one_of(std::size_t n) { chance(1.0 / static_cast<double>(n)); }

  bool take(std::string_view expected) {
    if (!text_.starts_with(expected)) return false;
    text_.remove_prefix(expected.size());
    return true;
  }
  void need(std::string_view expected) {
    if (!take(expected)) fail("expected '" + std::string(expected) + "'");
  }

  // The letters up to the next other character.
  std::string word() {
    std::size_t length = 0;
    while (length < text_.size() && std::isalpha(static_cast<unsigned char>(text_[length])) != 0) ++length;
    std::string taken(text_.substr(0, length));
    text_.remove_prefix(length);
    return taken;
  }
  std::size_t index_of(const std::vector<std::string>& list, const std::string& word) const {
    const auto found = std::find(list.begin(), list.end(), word);
    if (found == list.end()) fail("unknown word " + word);
    return static_cast<std::size_t>(found - list.begin());
  }
  void filler(const std::string& word) {
    chance(1.0 / static_cast<double>(index_of(words_.fillers, word) + 1) / zipf_);
  }

  // Weights of the sentence kinds: fact 3, question 4, agreement 3, brackets 2, phrase 1.5, repetition 2.
  void kind(double weight) {
    const double total =
        (values_.size() < shape_.names ? 3 : 0) + (values_.empty() ? 0 : 4) + 3 + 2 + 1.5 + (phrases_.empty() ? 0 : 2);
    chance(weight / total);
  }

  void sentence() {
    if (take("ask "))
      question();
    else if (take("the "))
      agreement();
    else if (take("say "))
      phrase();
    else if (take("again "))
      repetition();
    else if (!text_.empty() && std::isupper(static_cast<unsigned char>(text_[0])) != 0)
      fact();
    else {
      kind(2);
      brackets(1);
    }
    need(".\n");
  }

  void fact() {
    kind(3);
    const std::string name = word();
    index_of(words_.names, name);
    need(": ");
    const std::string value = word();
    index_of(words_.values, value);
    one_of(shape_.names - values_.size());
    one_of(shape_.values);
    if (!values_.emplace(name, value).second) fail("a second value of " + name);
  }

  void question() {
    kind(4);
    one_of(values_.size());
    const std::string name = word();
    need(": ");
    if (!values_.contains(name) || values_[name] != word()) fail("wrong answer for " + name);
  }

  void agreement() {
    kind(3);
    std::vector<std::string> all = {word()};
    while (take(" ")) all.push_back(word());
    if (all.size() < 3 || all.size() > shape_.most_between + 2) fail("number of words");
    const char number = all.front().back();
    if (number != 'o' && number != 'i') fail("number of " + all.front());
    if (all.back().back() != (number == 'o' ? 'a' : 'e')) fail("disagreement");
    index_of(words_.nouns, all.front().substr(0, all.front().size() - 1));
    index_of(words_.verbs, all.back().substr(0, all.back().size() - 1));
    one_of(shape_.nouns);
    one_of(2);
    one_of(shape_.most_between);
    for (std::size_t i = 1; i + 1 < all.size(); ++i) filler(all[i]);
    one_of(shape_.verbs);
  }

  void brackets(std::size_t depth) {
    const std::string_view open = "([{", close = ")]}";
    const std::size_t kind = text_.empty() ? open.npos : open.find(text_[0]);
    if (kind == open.npos) fail("expected a bracket");
    text_.remove_prefix(1);
    one_of(3);
    for (std::size_t items = 0;; ++items) {
      const bool room = items < shape_.most_items;
      const double total = (room ? 3 : 0) + (room && depth < shape_.deepest ? 2 : 0) + (items > 0 ? 2 : 0);
      if (items > 0 && take(close.substr(kind, 1))) return chance(2 / total);
      if (!room) fail("too many items");
      if (items > 0) need(" ");
      if (!text_.empty() && open.find(text_[0]) != open.npos) {
        if (depth == shape_.deepest) fail("too deep");
        chance(2 / total);
        brackets(depth + 1);
      } else {
        chance(3 / total);
        filler(word());
      }
    }
  }

  std::vector<std::string> words_to_end() {
    std::vector<std::string> all = {word()};
    while (take(" ")) all.push_back(word());
    return all;
  }

  void phrase() {
    kind(1.5);
    const auto all = words_to_end();
    if (all.size() < shape_.fewest_phrase_words || all.size() > shape_.most_phrase_words) fail("number of words");
    one_of(shape_.most_phrase_words - shape_.fewest_phrase_words + 1);
    for (const std::string& each : all) filler(each);
    phrases_.insert(all);
  }

  void repetition() {
    kind(2);
    one_of(phrases_.size());
    if (!phrases_.contains(words_to_end())) fail("never said");
  }

  GrammarShape shape_;
  const Lexicon& words_;
  std::string_view text_;
  double zipf_ = 0;
  double nats_ = 0;
  std::map<std::string, std::string> values_;
  std::set<std::vector<std::string>> phrases_;
};

}  // namespace headscope::test
