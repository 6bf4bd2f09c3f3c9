#include "data/corpus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/atomic_file.h"
#include "core/config.h"
#include "data/all_tokens.h"
#include "data/language.h"
#include "data/language_reader.h"
#include "data/token_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::LanguageReader;
using test::TemporaryFolder;
namespace fs = std::filesystem;

constexpr std::int64_t everything = std::int64_t{1} << 40;

Corpus load(const DataOptions& options, std::int64_t train = everything, std::int64_t validation = everything) {
  Console console({.quiet = true});
  return load_corpus(options, {.train = train, .validation = validation}, console);
}

Corpus load_file(const fs::path& path) {
  DataOptions options;
  options.path = path.string();
  options.validation_share = 0.3;
  return load(options);
}

// The documents of byte tokens: each begins with 257 and ends with 256.
std::vector<std::string> documents(const Tokens& tokens) {
  std::vector<std::string> texts;
  bool inside = false;
  for (const std::int64_t token : test::all_tokens(tokens)) {
    if (token == 257) {
      EXPECT_FALSE(inside);
      texts.emplace_back();
      inside = true;
    } else if (token == 256) {
      EXPECT_TRUE(inside);
      inside = false;
    } else {
      EXPECT_TRUE(inside);
      texts.back() += static_cast<char>(token);
    }
  }
  return texts;
}

std::string numbered_lines(int from, int to) {
  std::string text;
  for (int i = from; i < to; ++i) text += fmt::format("{{\"text\": \"document number {}\"}}\n", i);
  return text;
}

TEST(LanguageCorpus, HoldsWhatIsWantedAndNoDocumentTwice) {
  const Corpus corpus = load({}, 50000, 20000);
  EXPECT_GE(corpus.train.size(), 50000);
  EXPECT_LT(corpus.train.size(), 51000);
  EXPECT_GE(corpus.validation.size(), 20000);
  EXPECT_LT(corpus.validation.size(), 21000);
  EXPECT_EQ(corpus.vocabulary, 258);
  EXPECT_EQ(corpus.tokenizer, "bytes");
  const auto train = documents(corpus.train), validation = documents(corpus.validation);
  EXPECT_EQ(static_cast<std::int64_t>(train.size()), corpus.train_documents);
  EXPECT_EQ(validation.size(), corpus.validation_starts.size());
  std::set<std::string> distinct(train.begin(), train.end());
  distinct.insert(validation.begin(), validation.end());
  EXPECT_EQ(distinct.size(), train.size() + validation.size());
}

// Whatever compiler built the program: results of one machine are compared with those of another.
TEST(LanguageCorpus, IsTheSameEverywhere) {
  EXPECT_EQ(load({}, 20000, 5000).hash, "aab9ded6493df793681b9b51f0ed604c");
}

TEST(LanguageCorpus, WantingMoreOnlyAppendsAndLeavesTheOtherPartAsItIs) {
  const Corpus few = load({}, 20000, 5000), more = load({}, 40000, 5000), other = load({}, 20000, 9000);
  auto longer = test::all_tokens(more.train);
  ASSERT_GT(more.train.size(), few.train.size());
  longer.resize(static_cast<std::size_t>(few.train.size()));
  EXPECT_EQ(longer, test::all_tokens(few.train));
  EXPECT_EQ(test::all_tokens(more.validation), test::all_tokens(few.validation));
  EXPECT_EQ(test::all_tokens(other.train), test::all_tokens(few.train));
  EXPECT_GT(other.validation.size(), few.validation.size());
}

TEST(LanguageCorpus, TrueEntropyIsThatOfTheValidationDocuments) {
  const Corpus corpus = load({}, 1000, 30000);
  const Grammar grammar;
  double nats = 0;
  for (const std::string& text : documents(corpus.validation)) nats += LanguageReader(grammar, text).nats();
  EXPECT_NEAR(*corpus.true_entropy, nats / static_cast<double>(corpus.validation.size()), 1e-9);
  EXPECT_EQ(*corpus.unigram_entropy, language_unigram_entropy());
}

TEST(LanguageCorpus, TheHashTellsSeedsAndSizesApart) {
  DataOptions options;
  const std::string hash = load(options, 5000, 2000).hash;
  EXPECT_EQ(hash.size(), 32U);
  EXPECT_EQ(load(options, 5000, 2000).hash, hash);
  EXPECT_NE(load(options, 9000, 2000).hash, hash);
  options.language_seed = 1;
  EXPECT_NE(load(options, 5000, 2000).hash, hash);
  EXPECT_EQ(load(options, 5000, 2000).source, "embedded language, seed 1");
}

TEST(TextCorpus, EveryDocumentIsInOnePartWhateverElseIsThere) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "texts");
  write_file(folder / "texts" / "a.jsonl", numbered_lines(0, 100));
  const Corpus alone = load_file(folder / "texts" / "a.jsonl");
  write_file(folder / "texts" / "0.jsonl", numbered_lines(500, 700));
  const Corpus both = load_file(folder / "texts");
  const auto validation = documents(alone.validation), train = documents(alone.train);
  EXPECT_EQ(validation.size() + train.size(), 100U);
  EXPECT_NEAR(static_cast<double>(validation.size()), 30, 3 * std::sqrt(100 * 0.3 * 0.7));  // three standard deviations
  const auto more = documents(both.validation);
  const std::set<std::string> in_both(more.begin(), more.end());
  for (const std::string& text : validation) EXPECT_TRUE(in_both.contains(text)) << text;
  for (const std::string& text : train) EXPECT_FALSE(in_both.contains(text)) << text;
  EXPECT_FALSE(both.true_entropy.has_value());
}

TEST(TextCorpus, ReadsNoFurtherThanNeeded) {
  const TemporaryFolder folder;
  write_file(folder / "a.jsonl", numbered_lines(0, 100) + "damaged");
  DataOptions options;
  options.path = (folder / "a.jsonl").string();
  options.validation_share = 0.3;
  EXPECT_GE(load(options, 200, 100).train.size(), 200);
  expect_error(Fault::input, "a.jsonl: line 101: not valid JSON", [&] { load(options); });
}

TEST(TextCorpus, OneBookIsSplitInPieces) {
  const TemporaryFolder folder;
  std::string book;
  for (int i = 0; book.size() < 500000; ++i) book += fmt::format("sentence {}. ", i);
  write_file(folder / "book.txt", book);
  const Corpus corpus = load_file(folder / "book.txt");
  EXPECT_EQ(corpus.train.size() + corpus.validation.size(), static_cast<std::int64_t>(book.size()) + 2);
  EXPECT_EQ(corpus.train_documents + std::ssize(corpus.validation_starts),
            static_cast<std::int64_t>((book.size() + 2 + 16383) / 16384));
  EXPECT_GT(corpus.validation.size(), 0);
  write_file(folder / "book.txt", "short");
  expect_error(Fault::input, "book.txt: one document of 7 tokens cannot be split; name other data for validation",
               [&] { load_file(folder / "book.txt"); });
}

TEST(TextCorpus, SomeDocumentIsAlwaysForValidation) {
  const TemporaryFolder folder;
  DataOptions options;
  options.path = (folder / "a.jsonl").string();
  options.validation_share = 1e-9;
  write_file(folder / "a.jsonl", numbered_lines(0, 5));
  const Corpus corpus = load(options);
  EXPECT_EQ(corpus.validation_starts.size(), 1u);
  EXPECT_EQ(corpus.train_documents, 4);
  EXPECT_EQ(test::all_tokens(load(options, 1).validation), test::all_tokens(corpus.validation));
}

TEST(TextCorpus, NoTextIsAnError) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "\n<|endoftext|>\n");
  write_file(folder / "b.txt", "<|endoftext|>\n");
  expect_error(Fault::input, "b.txt: holds no text", [&] { load_file(folder / "b.txt"); });
  expect_error(Fault::input, "absent: is not there", [&] { load_file(folder / "absent"); });
}

// u16 tokens 1 … with 0 as end-of-text, vocabulary 300.
void write_tokens(const fs::path& file, const std::vector<std::uint16_t>& ids, const std::string& more = "",
                  const std::string& tokenizer = "mine") {
  write_file(file, {reinterpret_cast<const char*>(ids.data()), ids.size() * 2});
  write_file(token_info_file(file), fmt::format(R"({{"type": "u16", "vocabulary": 300, "tokenizer": "{}",
                                                    "end_of_text": 0{}}})",
                                                tokenizer, more));
}

TEST(TokenCorpus, IsSplitAtEndOfText) {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> ids;
  std::multiset<std::vector<std::int64_t>> expected;
  for (std::uint16_t document = 1; document < 100; ++document) {
    std::vector<std::int64_t> tokens(document % 7 + 1, document);
    tokens.push_back(0);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
    expected.insert(tokens);
  }
  ids.push_back(299);  // a last one without its end
  expected.insert({299});
  write_tokens(folder / "a.bin", ids, ", \"documents\": 100");
  const Corpus corpus = load_file(folder / "a.bin");
  std::multiset<std::vector<std::int64_t>> found;
  for (const Tokens* part : {&corpus.train, &corpus.validation}) {
    std::vector<std::int64_t> document;
    for (const std::int64_t token : test::all_tokens(*part)) {
      document.push_back(token);
      if (token != 0 && token != 299) continue;
      found.insert(document);
      document.clear();
    }
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(corpus.train_documents + std::ssize(corpus.validation_starts), 100);
  EXPECT_GT(corpus.validation_starts.size(), 10u);
  EXPECT_EQ(corpus.vocabulary, 300);
  EXPECT_EQ(corpus.tokenizer, "mine");
}

TEST(TokenCorpus, WhatDoesNotFitTheDescriptionIsNamed) {
  const TemporaryFolder folder;
  write_tokens(folder / "a.bin", {1, 2, 0, 3, 0}, ", \"documents\": 3");
  expect_error(Fault::input, "a.bin: holds 2 documents; a.json says 3", [&] { load_file(folder / "a.bin"); });
  write_tokens(folder / "a.bin", {1, 2, 0, 301, 0});
  expect_error(Fault::input, "a.bin: token 3 (byte 6) is 301", [&] { load_file(folder / "a.bin"); });
}

TEST(Corpus, ValidationCanBeOtherData) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "train");
  write_file(folder / "b.txt", "held out");
  DataOptions options;
  options.path = (folder / "a.txt").string();
  options.validation = (folder / "b.txt").string();
  const Corpus corpus = load(options);
  EXPECT_EQ(documents(corpus.train), std::vector<std::string>{"train"});
  EXPECT_EQ(documents(corpus.validation), std::vector<std::string>{"held out"});
  write_tokens(folder / "c.bin", {1, 0});
  options.validation = (folder / "c.bin").string();
  expect_error(Fault::input, "c.bin has tokenizer 'mine' and vocabulary 300", [&] { load(options); });
}

// A sample is taken of the whole validation text, not of its start.
TEST(Corpus, ValidationTakesWhatIsMetOnTheWay) {
  const auto load_language_up_to = [](std::int64_t most) {
    Console console({.quiet = true});
    return load_corpus({}, {.train = 200000, .validation = 1000, .most_validation = most}, console);
  };
  const Corpus few = load({}, 200000, 1000), more = load_language_up_to(everything);
  EXPECT_EQ(test::all_tokens(more.train), test::all_tokens(few.train));
  EXPECT_LT(few.validation.size(), 2000);
  EXPECT_GT(more.validation.size(), 2500);  // 2 % of 200,000 are 4,000; documents vary
  auto start = test::all_tokens(more.validation);
  start.resize(static_cast<std::size_t>(few.validation.size()));
  EXPECT_EQ(start, test::all_tokens(few.validation));
  EXPECT_LT(load_language_up_to(2000).validation.size(), more.validation.size());
  ASSERT_GT(more.validation_starts.size(), few.validation_starts.size());
  const auto tokens = test::all_tokens(more.validation);
  for (const std::int64_t start_of_document : more.validation_starts)
    EXPECT_EQ(tokens[static_cast<std::size_t>(start_of_document)], byte_tokenizer::start);
}

// Who needs validation only gets what training had, without the training part.
TEST(Corpus, ValidationIsTheSameWhereTrainingIsNotKept) {
  const TemporaryFolder folder;
  write_file(folder / "a.jsonl", numbered_lines(0, 3000));
  std::vector<std::uint16_t> ids;
  for (std::uint16_t i = 0; i < 3000; ++i)
    ids.insert(ids.end(), {static_cast<std::uint16_t>(1 + i % 299), i % 7u < 3u, 0});
  write_tokens(folder / "a.bin", ids);
  Console console({.quiet = true});
  for (const std::string path : {"", "a.jsonl", "a.bin"})
    for (const double share : {0.02, 0.6, 1e-9})           // the last: the smallest hash goes to validation
      for (const std::int64_t most : {0, 300, 1000000}) {  // reached at once, on the way, never
        DataOptions options;
        options.validation_share = share;
        if (!path.empty()) options.path = (folder / path).string();
        if (path.empty() && share == 1e-9) continue;  // the language never ends
        WantedTokens wanted{.train = 5000, .validation = 50, .most_validation = most};
        const Corpus with_training = load_corpus(options, wanted, console);
        wanted.keeps_train = false;
        const Corpus alone = load_corpus(options, wanted, console);
        const std::string shown = fmt::format("{} {} {}", path, share, most);
        EXPECT_EQ(test::all_tokens(alone.validation), test::all_tokens(with_training.validation)) << shown;
        EXPECT_EQ(alone.validation_starts, with_training.validation_starts) << shown;
        EXPECT_EQ(alone.true_entropy, with_training.true_entropy) << shown;
        EXPECT_EQ(alone.train.size(), 0) << shown;
        EXPECT_LE(alone.documents_read, with_training.documents_read) << shown;
        const bool ends_early = share == 0.6 && most == 300;
        EXPECT_TRUE(!ends_early || alone.documents_read < with_training.documents_read) << shown;
      }
}

TEST(Corpus, ValidationDataOfItsOwnIsReadUpToTheMost) {
  const TemporaryFolder folder;
  write_file(folder / "a.txt", "train");
  std::string text;
  for (int i = 0; i < 50; ++i) text += "{\"text\": \"0123456789\"}\n";
  write_file(folder / "b.jsonl", text);
  DataOptions options;
  options.path = (folder / "a.txt").string();
  options.validation = (folder / "b.jsonl").string();
  const auto documents_up_to = [&](std::int64_t most) {
    Console console({.quiet = true});
    const WantedTokens wanted{.train = 5, .validation = 20, .most_validation = most};
    return load_corpus(options, wanted, console).validation_starts.size();
  };
  EXPECT_EQ(documents_up_to(0), 2u);
  EXPECT_EQ(documents_up_to(120), 10u);
  EXPECT_EQ(documents_up_to(everything), 50u);
}

// Documents with 1 to 4 and with 40,000 tokens, as text of bytes and as tokens.
TEST(Corpus, CountsTheDocumentsThatAreLongerThanTheRange) {
  const TemporaryFolder folder;
  std::string text;
  std::vector<std::uint16_t> ids;
  for (const std::size_t length : {4, 1, 3, 2, 40000, 4}) {
    text += fmt::format("{{\"text\": \"{}\"}}\n", std::string(length, 'x'));
    ids.insert(ids.end(), length, 7);
    ids.push_back(0);
  }
  ids.insert(ids.end(), 9, 7);  // a last one without its end
  write_file(folder / "a.jsonl", text);
  write_tokens(folder / "a.bin", ids);
  Console console({.quiet = true});
  const auto counts = [&](const fs::path& file, std::int64_t wanted, std::int64_t range) {
    DataOptions options;
    options.path = options.validation = file.string();
    const Corpus corpus = load_corpus(options, {.train = 1, .validation = wanted, .range = range}, console);
    return std::pair(corpus.documents_beyond_range, corpus.documents_read);
  };
  using Counts = std::pair<std::int64_t, std::int64_t>;
  // With the byte that begins a text, and without the one that ends it, texts have 2 to 5 and 40,001 tokens.
  EXPECT_EQ(counts(folder / "a.jsonl", everything, 4), Counts(3, 6));
  EXPECT_EQ(counts(folder / "a.jsonl", everything, 5), Counts(1, 6));
  EXPECT_EQ(counts(folder / "a.jsonl", everything, 40000), Counts(1, 6));
  EXPECT_EQ(counts(folder / "a.jsonl", everything, 40001), Counts(0, 6));
  EXPECT_EQ(counts(folder / "a.jsonl", everything, 0), Counts(0, 6));
  EXPECT_EQ(counts(folder / "a.jsonl", 10, 3), Counts(2, 3));  // 6 + 3 + 5 tokens: no more is read
  EXPECT_EQ(counts(folder / "a.bin", everything, 3), Counts(4, 7));
  EXPECT_EQ(counts(folder / "a.bin", everything, 4), Counts(2, 7));
  EXPECT_EQ(counts(folder / "a.bin", everything, 39999), Counts(1, 7));
  EXPECT_EQ(counts(folder / "a.bin", everything, 40000), Counts(0, 7));
  EXPECT_EQ(counts(folder / "a.bin", 100, 5), Counts(1, 5));  // the first piece of the long one is enough
}

TEST(DataOptions, ValuesWithoutSenseAreRefused) {
  DataOptions options;
  for (const double share : {0.0, 1.0, -1.0, std::nan("")}) {
    options.validation_share = share;
    expect_error(Fault::input, "data.validation_share is", [&] { validate(options); });
  }
  options = {};
  options.validation = "x.txt";
  expect_error(Fault::input, "data.validation is 'x.txt' and data.path is empty", [&] { validate(options); });
  options = {};
  apply(options, {"data.text_column", "", "--set"});
  expect_error(Fault::input, "data.text_column is empty", [&] { validate(options); });
}

}  // namespace
}  // namespace headscope
