#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "data/corpus.h"
#include "data/token_file.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;

constexpr std::int64_t any = 1'000'000'000'000;

Corpus start(const std::filesystem::path& path, std::int64_t train = any, std::int64_t validation = any) {
  DataOptions options;
  options.path = path.string();
  options.validation_share = 0.3;
  return start_of_corpus(options, {.train = train, .validation = validation});
}

Corpus whole(const std::filesystem::path& path) {
  Console quiet({.quiet = true});
  DataOptions options;
  options.path = path.string();
  options.validation_share = 0.3;
  return load_corpus(options, {.train = any, .validation = any}, quiet);
}

std::string lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{{\"text\": \"document {}\"}}\n", i);
  return text;
}

TEST(StartOfCorpus, OfLittleDataIsAllOfIt) {
  const TemporaryFolder folder;
  write_file(folder / "a.jsonl", lines(100));
  const Corpus beginning = start(folder / "a.jsonl"), all = whole(folder / "a.jsonl");
  EXPECT_FALSE(beginning.cut);
  EXPECT_EQ(beginning.train.size(), all.train.size());
  EXPECT_EQ(beginning.validation.size(), all.validation.size());
}

// 40 MB of text, damaged behind the first 30: what is read at most shows nothing of it.
TEST(StartOfCorpus, OfMuchDataStopsEarly) {
  const TemporaryFolder folder;
  const std::string document = fmt::format("{{\"text\": \"{}\"}}\n", std::string(1 << 20, 'x'));
  std::string text;
  for (int i = 0; i < 30; ++i) text += document;
  write_file(folder / "a.jsonl", text + "damaged\n");
  EXPECT_TRUE(start(folder / "a.jsonl").cut);
  expect_error(Fault::input, "a.jsonl: line 31: not valid JSON", [&] { whole(folder / "a.jsonl"); });
  EXPECT_FALSE(start(folder / "a.jsonl", /*train=*/100, /*validation=*/100).cut);  // both parts are full
  // One document of the two that are needed to split: more would come.
  std::string long_text(40 << 20, 'x');
  long_text += "\n<|endoftext|>\nsecond";
  write_file(folder / "b.txt", long_text);
  EXPECT_NO_THROW(start(folder / "b.txt"));
}

TEST(StartOfCorpus, OfATokenFileStopsEarlyToo) {
  const TemporaryFolder folder;
  std::vector<std::uint16_t> ids((1 << 24) + 100'000, 1);
  ids.back() = 999;
  write_file(folder / "a.bin", {reinterpret_cast<const char*>(ids.data()), ids.size() * 2});
  write_file(folder / "a.json", R"({"type": "u16", "vocabulary": 300, "tokenizer": "mine", "end_of_text": 0})");
  const Corpus beginning = start(folder / "a.bin");
  EXPECT_TRUE(beginning.cut);
  EXPECT_EQ(beginning.vocabulary, 300);
  expect_error(Fault::input, "is 999; expected less than the vocabulary", [&] { whole(folder / "a.bin"); });
}

TEST(StartOfCorpus, RefusesWhatTheWholeWould) {
  const TemporaryFolder folder;
  write_file(folder / "notes.md", "text");
  write_file(folder / "empty.txt", "");
  write_file(folder / "one.txt", "short");
  for (const char* name : {"notes.md", "empty.txt", "one.txt", "absent.txt", "no.bin"}) {
    std::string message;
    try {
      whole(folder / name);
    } catch (const Error& error) {
      message = error.what();
    }
    ASSERT_FALSE(message.empty()) << name;
    expect_error(Fault::input, message, [&] { start(folder / name); });
  }
  expect_error(Fault::input, "File name too long", [&] { start(folder / std::string(300, 'x')); });
}

TEST(StartOfCorpus, OfTheLanguageReadsNothing) {
  const Corpus language = start_of_corpus({}, {.train = any, .validation = any});
  EXPECT_TRUE(language.cut);
  EXPECT_EQ(language.vocabulary, 258);
}

}  // namespace
}  // namespace headscope
