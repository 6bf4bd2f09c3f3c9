#include "capture/texts.h"

#include <gtest/gtest.h>

#include "core/atomic_file.h"
#include "data/split.h"
#include "data/tokens.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
using Visited = std::vector<std::pair<std::int64_t, std::size_t>>;  // number, tokens

Visited visited(const TextSource& source, const TextLimits& limits) {
  TextTokenizer bytes(byte_tokenizer::name);
  Visited texts;
  for_each_tokenized(source, bytes, limits, [&](std::int64_t id, const std::vector<std::uint32_t>& tokens) {
    texts.emplace_back(id, tokens.size());
    return true;
  });
  return texts;
}

TEST(CapturedTexts, EmptyOnesCountInTheNumbersOfTheOthers) {
  const TemporaryFolder folder;
  write_file(folder / "a.jsonl", "{\"text\": \"abc\"}\n\n{\"text\": \"\"}\n{\"text\": \"d\"}\n");
  write_file(folder / "b.txt", "x\n<|endoftext|>\n<|endoftext|>\nyz\n<|endoftext|>\n");
  // The byte tokenizer begins every text with a token: none is without.
  EXPECT_EQ(visited({{folder / "a.jsonl", folder / "b.txt"}, "text"}, {100, {}}),
            (Visited{{0, 4}, {1, 1}, {2, 2}, {3, 3}, {4, 1}, {5, 4}}));
  EXPECT_EQ(visited({{folder / "a.jsonl", folder / "b.txt"}, "text"}, {3, 4}),
            (Visited{{0, 3}, {1, 1}, {2, 2}, {3, 3}}));
}

TEST(CapturedTexts, TheSurveyCountsAndHashesThem) {
  const TemporaryFolder folder;
  write_file(folder / "a.jsonl", "{\"text\": \"abc\"}\n{\"text\": \"defghi\"}\n");
  TextTokenizer bytes(byte_tokenizer::name);
  const TextSource source{{folder / "a.jsonl"}, "text"};
  const TextSurvey found = survey(source, bytes, {5, {}});
  EXPECT_EQ(found.texts, 2);
  EXPECT_EQ(found.tokens, 9);
  EXPECT_EQ(found.longest, 5);
  EXPECT_EQ(found.at_limit, 1);
  EXPECT_EQ(found.largest_id, byte_tokenizer::start);
  EXPECT_EQ(found.hash, survey(source, bytes, {5, {}}).hash);
  EXPECT_NE(found.hash, survey(source, bytes, {4, {}}).hash);
  write_file(folder / "a.jsonl", "{\"text\": \"abd\"}\n{\"text\": \"defghi\"}\n");
  EXPECT_NE(found.hash, survey(source, bytes, {5, {}}).hash);
  write_file(folder / "a.jsonl", "{\"text\": \"abc\"}\n{\"text\": 3}\n");
  expect_error(Fault::input, "a.jsonl: line 2: field 'text' is a number; expected a text", [&] {
    survey(source, bytes, {5, {}});
  });
}

TEST(CapturedTexts, TheEmbeddedLanguageGivesItsHeldOutDocuments) {
  const Visited few = visited({{}, "", 0, 0.02}, {64, 3});
  ASSERT_EQ(few.size(), 3U);
  EXPECT_EQ(few[2].first, 2);
}

TEST(CapturedTexts, OfATrainingsFileThoseThatItHeldOut) {
  const TemporaryFolder folder;
  std::string lines;
  std::vector<std::string> held_out;
  for (int i = 0; i < 200; ++i) {
    const std::string text = "text " + std::to_string(i * i);
    lines += "{\"text\": \"" + text + "\"}\n";
    if (in_validation(split_hash(text), 0.25)) held_out.push_back(text);
  }
  write_file(folder / "a.jsonl", lines);
  const Visited found = visited({{folder / "a.jsonl"}, "text", {}, 0.25}, {100, {}});
  ASSERT_EQ(found.size(), held_out.size());
  EXPECT_GT(found.size(), 20U);
  EXPECT_LT(found.size(), 80U);
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].second, held_out[i].size() + 1);
}

}  // namespace
}  // namespace headscope
