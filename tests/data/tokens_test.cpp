#include "data/tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/random.h"
#include "data/all_tokens.h"
#include "data/blocks.h"
#include "data/split.h"
#include "support/expect_error.h"

namespace headscope {
namespace {

using test::expect_error;

// 0, 1, 2, ...
Tokens counting(std::int64_t size, std::int64_t vocabulary = 65536) {
  auto buffer = std::make_shared<TokenBuffer>(vocabulary);
  std::vector<std::uint32_t> values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), 0U);
  buffer->append(values);
  const TokenRange whole{0, size};
  return {buffer, buffer->span(), {&whole, 1}};
}

TEST(Tokens, AreRangesOfAStoreOneAfterAnother) {
  const auto buffer = std::make_shared<TokenBuffer>(100);
  buffer->append(std::vector<std::uint32_t>{10, 11, 12, 13, 14, 15, 16, 17});
  const std::vector<TokenRange> ranges = {{1, 2}, {3, 1}, {6, 2}, {0, 1}};
  const Tokens tokens(buffer, buffer->span(), ranges);
  const std::vector<std::int64_t> expected = {11, 12, 13, 16, 17, 10};
  ASSERT_EQ(tokens.size(), 6);
  EXPECT_EQ(test::all_tokens(tokens), expected);
  for (std::int64_t first = 0; first <= 6; ++first)
    for (std::int64_t count = 0; first + count <= 6; ++count) {
      std::vector<std::int64_t> part(static_cast<std::size_t>(count));
      tokens.copy(first, count, part.data());
      EXPECT_TRUE(std::equal(part.begin(), part.end(), expected.begin() + first));
    }
  EXPECT_EQ(Tokens().size(), 0);
  std::int64_t behind = 0;
  expect_error(Fault::runtime, "tokens 6 + 1 of 6", [&] { tokens.copy(6, 1, &behind); });
}

TEST(Tokens, OfALargeVocabularyKeepAllBits) {
  const auto buffer = std::make_shared<TokenBuffer>(70000);
  buffer->append(std::vector<std::uint32_t>{69999, 65536, 1});
  const TokenRange whole{0, 3};
  EXPECT_EQ(test::all_tokens(Tokens(buffer, buffer->span(), {&whole, 1})),
            (std::vector<std::int64_t>{69999, 65536, 1}));
}

TEST(BlockOrder, IsNumpysChoiceForSeedAndEpoch) {
  // M = 2**64 - 1; mix = SplitMix64's finaliser; numpy.random.default_rng(mix((mix(3) + epoch) & M)).choice(10, 10,
  // replace=False)
  const std::map<std::int64_t, std::vector<std::int64_t>> epochs = {
      {0, {6, 2, 5, 4, 8, 9, 7, 0, 3, 1}}, {1, {4, 1, 8, 3, 0, 7, 5, 6, 9, 2}}, {5, {1, 5, 4, 2, 7, 6, 9, 3, 8, 0}}};
  BlockOrder order(/*tokens=*/41, /*seq_len=*/4, /*seed=*/3);
  ASSERT_EQ(order.blocks(), 10);
  for (const auto& [epoch, expected] : epochs)
    for (std::int64_t i = 0; i < 10; ++i) EXPECT_EQ(order.block_at(epoch * 10 + i), expected[i]) << epoch << " " << i;
}

TEST(BlockOrder, TakesEveryBlockOnceAnEpochAndCanGoOnAnywhere) {
  BlockOrder order(1000, 7, 1), other(1000, 7, 1);
  const std::int64_t blocks = order.blocks();
  EXPECT_EQ(blocks, 142);
  std::vector<std::int64_t> first, second;
  for (std::int64_t i = 0; i < blocks; ++i) first.push_back(order.block_at(i));
  for (std::int64_t i = 0; i < blocks; ++i) second.push_back(order.block_at(blocks + i));
  EXPECT_NE(first, second);
  for (std::int64_t position : {200L, 3L, 283L, 0L})
    EXPECT_EQ(other.block_at(position), position < blocks ? first[position] : second[position - blocks]);
  for (auto* epoch : {&first, &second}) {
    std::sort(epoch->begin(), epoch->end());
    for (std::int64_t i = 0; i < blocks; ++i) EXPECT_EQ((*epoch)[i], i);
  }
}

TEST(BlockOrder, NeedsOneBlockAndItsLastTarget) {
  EXPECT_EQ(BlockOrder(9, 8, 0).blocks(), 1);
  EXPECT_EQ(BlockOrder(16, 8, 0).blocks(), 1);
  EXPECT_EQ(BlockOrder(17, 8, 0).blocks(), 2);
  expect_error(Fault::input, "the training data has 8 tokens; a block of 8 needs 9", [] { BlockOrder(8, 8, 0); });
}

TEST(Batch, TargetsAreTheNextTokens) {
  const Tokens tokens = counting(100);
  BlockOrder order(tokens.size(), 8, 5);
  std::vector<std::int64_t> inputs(3 * 8), targets(3 * 8);
  const std::int64_t position = order.blocks() - 1;  // goes over into the next epoch
  fill_batch(tokens, order, position, 3, 8, inputs.data(), targets.data());
  for (std::int64_t row = 0; row < 3; ++row) {
    const std::int64_t block = BlockOrder(100, 8, 5).block_at(position + row);
    for (std::int64_t t = 0; t < 8; ++t) {
      EXPECT_EQ(inputs[row * 8 + t], block * 8 + t);
      EXPECT_EQ(targets[row * 8 + t], block * 8 + t + 1);
    }
  }
}

TEST(Batch, FirstFixedBlocksAreInOrderAndNeverWrap) {
  const Tokens tokens = counting(49);
  std::vector<std::int64_t> inputs(6 * 8), targets(6 * 8);
  fill_blocks(tokens, fixed_blocks(49, 3, 2, 8, /*sampled=*/false), 8, inputs.data(), targets.data());
  for (std::int64_t i = 0; i < 48; ++i) EXPECT_EQ(inputs[i], i);
  EXPECT_EQ(targets.back(), 48);
  EXPECT_EQ(tokens_for_batches(3, 2, 8), 49);
  for (const bool sampled : {false, true})
    expect_error(Fault::input, "the validation data has 49 tokens; 4 batches of 2 x 8 need 65",
                 [&] { fixed_blocks(49, 4, 2, 8, sampled); });
}

TEST(Batch, SampledBlocksAreThoseOfNumpy) {
  // numpy.random.default_rng(0).choice(1000, 8, replace=False)
  const std::vector<std::int64_t> expected = {844, 75, 16, 508, 306, 268, 40, 633};
  EXPECT_EQ(fixed_blocks(8001, 4, 2, 8, /*sampled=*/true), expected);
  // All blocks, where there are no more: each once.
  std::vector<std::int64_t> all = fixed_blocks(49, 3, 2, 8, /*sampled=*/true);
  std::ranges::sort(all);
  EXPECT_EQ(all, fixed_blocks(49, 3, 2, 8, /*sampled=*/false));
}

TEST(Batch, CountsTheDocumentsOfBlocksOnce) {
  const std::vector<std::int64_t> starts = {0, 5, 8, 20, 31};
  const auto documents = [&](std::vector<std::int64_t> blocks) { return count_documents(starts, blocks, 8); };
  EXPECT_EQ(documents({0}), 2);     // tokens 0 to 7: a document begins at 8, behind them
  EXPECT_EQ(documents({1}), 1);     // 8 to 15
  EXPECT_EQ(documents({1, 2}), 2);  // to 23
  EXPECT_EQ(documents({2, 1, 2}), 2);
  EXPECT_EQ(documents({3, 0, 1, 2}), 5);  // to 31
  EXPECT_EQ(documents({9}), 1);
}

TEST(SplitRanges, PutsTheShareOfHashesIntoValidation) {
  SplitRanges split(0.25, {.train = 1000, .validation = 1000});
  const auto at = [](double place) { return static_cast<std::uint64_t>(place * 0x1p64); };
  const std::vector<double> places = {0.5, 0.1, 0.9, 0.2499, 0.2501};
  for (std::size_t i = 0; i < places.size(); ++i) split.add(at(places[i]), {static_cast<std::int64_t>(10 * i), 10});
  split.finish("data");
  ASSERT_EQ(split.train().size(), 3U);
  ASSERT_EQ(split.validation().size(), 2U);
  EXPECT_EQ(split.validation()[1].first, 30);
}

TEST(SplitRanges, TheSmallestHashGoesToValidationWhereNoneFell) {
  for (const std::int64_t wanted : {1, 1000}) {  // also where training had enough before that piece came
    SplitRanges split(0.01, {.train = wanted, .validation = 5});
    std::int64_t first = 0;
    for (const std::uint64_t hash : {9U, 5U, 3U, 7U}) {
      const std::uint64_t large = std::uint64_t{hash} << 60;
      if (split.wants(large)) split.add(large, {first, 10});
      first += 10;
    }
    split.finish("data");
    ASSERT_EQ(split.validation().size(), 1U);
    EXPECT_EQ(split.validation()[0].first, 20);
    for (const TokenRange& range : split.train()) EXPECT_NE(range.first, 20);
    EXPECT_GE(split.train().size(), 1U);
  }
}

TEST(SplitRanges, OnePieceCannotBeSplit) {
  SplitRanges split(0.01, {.train = 5, .validation = 5});
  split.add(std::uint64_t{1} << 63, {0, 77});
  expect_error(Fault::input, "book.txt: one document of 77 tokens cannot be split", [&] { split.finish("book.txt"); });
  SplitRanges low(0.01, {.train = 5, .validation = 5});  // the same where it fell into validation
  low.add(0, {0, 77});
  expect_error(Fault::input, "book.txt: one document of 77 tokens cannot be split", [&] { low.finish("book.txt"); });
}

TEST(SplitRanges, TrainingIsNeverEmpty) {
  SplitRanges split(0.5, {.train = 5, .validation = 100});
  split.add(1, {0, 10});
  split.add(2, {10, 10});
  split.finish("data");
  EXPECT_EQ(split.train().size(), 1U);
  EXPECT_EQ(split.validation().size(), 1U);
}

TEST(SplitRanges, TrainingThatIsNotKeptEndsWhereValidationTakesNoMore) {
  SplitRanges split(0.5, {.train = 1000, .validation = 5, .most_validation = 20, .keeps_train = false});
  const std::uint64_t low = 1, high = std::uint64_t{1} << 63;
  for (const std::int64_t first : {0, 10}) {
    EXPECT_FALSE(split.full());
    EXPECT_TRUE(split.wants(low));
    split.add(low, {first, 10});
  }
  EXPECT_FALSE(split.full());  // training would take a piece of validation
  EXPECT_FALSE(split.wants(high));
  split.add(high, {20, 10});
  EXPECT_TRUE(split.full());
  split.finish("data");
  EXPECT_TRUE(split.train().empty());
  EXPECT_EQ(split.validation().size(), 2U);
}

// 3 of 4 tokens are the same: 3/4 ln 4/3 + 1/4 ln 4. More tokens than one block.
TEST(UnigramEntropy, IsThatOfTheFrequencies) {
  TokenBuffer buffer(10);
  std::vector<std::uint32_t> tokens(200'000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = i % 4 == 0 ? 7 : 3;
  buffer.append(tokens);
  const std::vector<TokenRange> all = {{0, buffer.size()}};
  const double expected = 0.75 * std::log(4.0 / 3) + 0.25 * std::log(4.0);
  EXPECT_NEAR(unigram_entropy(Tokens(nullptr, buffer.span(), all), 10), expected, 1e-12);
}

}  // namespace
}  // namespace headscope
