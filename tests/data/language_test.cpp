#include "data/language.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

#include "data/language_reader.h"
#include "data/tokens.h"

namespace headscope {
namespace {

using test::LanguageReader;

TEST(Language, ADocumentDependsOnSeedAndIndexAlone) {
  const Language language(7);
  const LanguageDocument third = language.document(3);
  EXPECT_NE(language.document(4).text, third.text);
  EXPECT_EQ(Language(7).document(3).text, third.text);
  EXPECT_EQ(Language(7).document(3).nats, third.nats);
  EXPECT_NE(Language(8).document(3).text, third.text);
  EXPECT_NE(Language(3).document(7).text, third.text);
  EXPECT_NE(language.document(2).text, third.text);
}

TEST(Language, AReaderWhoKnowsTheGrammarFindsTheSameProbability) {
  const Language language(1);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const LanguageDocument document = language.document(i);
    // Some hundred logarithms that sum to a few hundred: the error is far below 1e-9.
    ASSERT_NEAR(LanguageReader(language.grammar(), document.text).nats(), document.nats, 1e-9) << document.text;
  }
}

TEST(Language, TheReaderNoticesWhatIsNotInTheLanguage) {
  const Language language(1);
  const std::string text = language.document(0).text;
  const auto read = [&](const std::string& other) { return LanguageReader(language.grammar(), other).nats(); };
  EXPECT_NO_THROW(read(text));
  EXPECT_ANY_THROW(read(text + "the"));
  EXPECT_ANY_THROW(read(text.substr(0, text.size() - 1)));
  EXPECT_ANY_THROW(read(text.substr(0, text.find('\n') + 1)));
}

// Goes through all sequences of choices, as an odometer does.
class EveryChoice final : public Choices {
 public:
  explicit EveryChoice(std::vector<std::size_t>& digits, std::vector<std::vector<double>>& wheels)
      : digits_(digits), wheels_(wheels) {
    wheels_.clear();
  }

 private:
  std::size_t choose(std::span<const double> weights, double total) override {
    const std::size_t place = wheels_.size();
    wheels_.emplace_back(weights.begin(), weights.end());
    EXPECT_NEAR(std::accumulate(weights.begin(), weights.end(), 0.0), total, 1e-12);
    if (place == digits_.size()) digits_.push_back(0);
    while (weights[digits_[place]] <= 0) ++digits_[place];
    return digits_[place];
  }

  std::vector<std::size_t>& digits_;
  std::vector<std::vector<double>>& wheels_;
};

// The next sequence; false after the last.
bool advance(std::vector<std::size_t>& digits, const std::vector<std::vector<double>>& wheels) {
  while (!digits.empty()) {
    const std::vector<double>& wheel = wheels[digits.size() - 1];
    do ++digits.back();
    while (digits.back() < wheel.size() && wheel[digits.back()] <= 0);
    if (digits.back() < wheel.size()) return true;
    digits.pop_back();
  }
  return false;
}

// All documents of the grammar with the -log p that the choices claim.
std::map<std::string, double> all_documents(const Grammar& grammar) {
  std::map<std::string, double> documents;
  std::vector<std::size_t> digits;
  std::vector<std::vector<double>> wheels;
  do {
    EveryChoice choices(digits, wheels);
    const std::string text = grammar.document(choices);
    EXPECT_TRUE(documents.emplace(text, choices.nats()).second) << "two sequences of choices give:\n" << text;
  } while (advance(digits, wheels) && !::testing::Test::HasFailure());
  return documents;
}

void expect_a_distribution(const GrammarShape& shape, std::size_t at_least) {
  const Grammar grammar(shape);
  const auto documents = all_documents(grammar);
  EXPECT_GE(documents.size(), at_least);
  double sum = 0;
  for (const auto& [text, nats] : documents) {
    sum += std::exp(-nats);
    ASSERT_NEAR(LanguageReader(grammar, text).nats(), nats, 1e-9) << text;
  }
  EXPECT_NEAR(sum, 1, 1e-9);  // some 1e5 terms, each with an error of 1e-16 times its logarithm
}

TEST(Grammar, EachTextComesFromOneSequenceOfChoicesAndProbabilitiesSumToOne) {
  GrammarShape shape;
  shape.fillers = shape.names = shape.values = 2;
  shape.nouns = shape.verbs = 1;
  shape.fewest_sentences = 1;
  shape.most_sentences = 3;
  shape.fewest_phrase_words = 1;
  shape.most_phrase_words = 2;
  shape.most_between = 1;
  shape.most_items = 1;
  shape.deepest = 1;
  expect_a_distribution(shape, 5000);
}

TEST(Grammar, NestedBracketsAndSeveralWordsBetweenAreDistinct) {
  GrammarShape shape;
  shape.fillers = 2;
  shape.names = shape.values = shape.nouns = shape.verbs = 2;
  shape.fewest_sentences = shape.most_sentences = 1;
  shape.most_items = 2;
  shape.deepest = 2;
  expect_a_distribution(shape, 1000);
}

TEST(Grammar, AWordIsKnownAfterTwoLetters) {
  const Grammar grammar;
  const Lexicon& words = grammar.lexicon();
  std::vector<std::string> in_sentences = words.fillers;
  in_sentences.insert(in_sentences.end(), words.verbs.begin(), words.verbs.end());
  for (const auto& list : {in_sentences, words.names, words.values, words.nouns}) {
    std::set<std::string> starts;
    for (const std::string& word : list) starts.insert(word.substr(0, 2));
    EXPECT_EQ(starts.size(), list.size());
  }
}

TEST(Language, DocumentsFitAContextAndHoldAskedFacts) {
  const Language language(0);
  std::size_t answered = 0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::string text = language.document(i).text;
    EXPECT_GE(text.size(), 150U);
    EXPECT_LE(text.size(), 800U);
    if (text.find("ask ") != std::string::npos) ++answered;
  }
  EXPECT_GE(answered, 480U);
}

TEST(Language, UnigramEntropyIsThatOfAnotherSample) {
  const double entropy = language_unigram_entropy();
  EXPECT_GT(entropy, 3.0);
  EXPECT_LT(entropy, 3.4);
  const Language language(99);
  std::map<int, double> counts;
  double tokens = 0, nats = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const LanguageDocument document = language.document(i);
    for (const unsigned char c : document.text) ++counts[c];
    ++counts[-1];
    ++counts[-2];
    tokens += static_cast<double>(document.text.size()) + 2;
    nats += document.nats;
  }
  double unigram = 0;
  for (const auto& [token, count] : counts) unigram -= count / tokens * std::log(count / tokens);
  EXPECT_NEAR(entropy, unigram, 0.005);  // sampling error of 700 000 tokens
  EXPECT_GT(nats / tokens, 0.45);
  EXPECT_LT(nats / tokens, 0.75);
}

TEST(ByteTokenizer, GivesBytesBetweenTwoSpecialTokens) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  std::vector<std::uint32_t> tokens;
  byte_tokenizer::encode(all, tokens);
  ASSERT_EQ(tokens.size(), 258U);
  for (std::uint32_t c = 0; c < 256; ++c) EXPECT_EQ(tokens[c + 1], c);
  EXPECT_EQ(tokens.front(), 257U);
  EXPECT_EQ(tokens.back(), 256U);
  EXPECT_EQ(byte_tokenizer::vocabulary, 258);
}

}  // namespace
}  // namespace headscope
