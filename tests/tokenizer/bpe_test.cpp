#include "tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include "support/expect_error.h"
#include "support/time_limit.h"

namespace headscope {
namespace {

using test::expect_error;
using Ids = std::vector<std::uint32_t>;

// A vocabulary of random merges over a few letters.
BpeParts random_parts(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  BpeParts parts;
  std::vector<std::string> pieces = {"a", "b", "c", "é", "😀"};
  std::map<std::string, int> known;
  for (const std::string& piece : pieces) known[piece] = 1;
  for (int i = 0; i < 60; ++i) {
    const std::string left = pieces[random() % pieces.size()], right = pieces[random() % pieces.size()];
    if ((left + right).size() > 40) continue;
    parts.merges.emplace_back(left, right);
    if (known.emplace(left + right, 1).second) pieces.push_back(left + right);
  }
  for (std::uint32_t i = 0; i < pieces.size(); ++i) parts.pieces.push_back({pieces[i], 3 * i});
  return parts;
}

// The definition: merge the pair of lowest rank, the leftmost one of several, until none is left.
Ids by_definition(const BpeParts& parts, const std::vector<std::string>& characters) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t i = 0; i < parts.merges.size(); ++i) ranks[parts.merges[i]] = i;
  std::vector<std::string> word = characters;
  for (;;) {
    std::size_t best = std::numeric_limits<std::size_t>::max(), place = 0;
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = ranks.find({word[i], word[i + 1]});
      if (found != ranks.end() && found->second < best) {
        best = found->second;
        place = i;
      }
    }
    if (best == std::numeric_limits<std::size_t>::max()) break;
    word[place] += word[place + 1];
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  Ids ids;
  for (const std::string& piece : word)
    for (const BpePiece& known : parts.pieces)
      if (known.text == piece) ids.push_back(known.id);
  return ids;
}

TEST(Bpe, MergesAsDefined) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const BpeParts parts = random_parts(seed);
    Bpe bpe(parts);
    std::mt19937_64 random(seed + 1000);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::string> characters;
      std::string word;
      for (std::size_t i = 0, length = 1 + random() % 30; i < length; ++i) {
        characters.push_back(parts.pieces[random() % 5].text);
        word += characters.back();
      }
      Ids ids;
      bpe.encode(word, ids);
      ASSERT_EQ(ids, by_definition(parts, characters)) << seed << " " << word;
    }
  }
}

TEST(Bpe, LongWordsTakeLittleTime) {
  Bpe bpe(random_parts(1));
  std::mt19937_64 random(2);
  std::string word;
  while (word.size() < 4'000'000) word += static_cast<char>('a' + random() % 3);
  Ids ids;
  const test::TimeLimit limit(60);  // a quadratic loop takes hours
  bpe.encode(word, ids);
  EXPECT_GT(ids.size(), 100'000U);
}

TEST(Bpe, ScoresBecomeMerges) {
  const std::vector<BpePiece> pieces = {{"a", 0}, {"b", 1}, {"ab", 2}, {"aba", 3}, {"ba", 4}};
  const auto merges = merges_by_score(pieces, {0, 0, -2, -3, -1});
  const std::vector<std::pair<std::string, std::string>> expected = {{"b", "a"}, {"a", "b"}, {"a", "ba"}, {"ab", "a"}};
  EXPECT_EQ(merges, expected);
  expect_error(Fault::input, "the score of piece 0 is not a number", [] {
    merges_by_score({{"a", 0}}, {std::numeric_limits<float>::quiet_NaN()});
  });
  expect_error(Fault::input, "expected UTF-8 of at most 1024", [] {
    merges_by_score({{std::string(5000, 'a'), 0}}, {0});
  });
}

TEST(Bpe, DamagedPiecesAreRefused) {
  const auto refused = [](const BpeParts& parts, const std::string& message) {
    expect_error(Fault::input, message, [&] { Bpe bpe(parts); });
  };
  BpeParts parts;
  parts.pieces = {{"\xc3", 0}};
  refused(parts, "the piece with id 0 is not UTF-8");
  parts.pieces = {{"a", 0}, {"##b", 1}};
  parts.merges = {{"##b", "a"}};
  parts.continuing_prefix = "##";
  refused(parts, "'a' is shorter than the prefix '##'");
}

}  // namespace
}  // namespace headscope
