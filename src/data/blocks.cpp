#include "data/blocks.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/random.h"

namespace headscope {
namespace {

void fill_block(const Tokens& tokens, std::int64_t block, std::int64_t seq_len, std::int64_t* inputs,
                std::int64_t* targets) {
  tokens.copy(block * seq_len, seq_len, inputs);
  tokens.copy(block * seq_len + 1, seq_len, targets);
}

}  // namespace

void check_block(std::int64_t tokens, std::int64_t seq_len) {
  HEADSCOPE_CHECK(seq_len > 0, "seq_len {}", seq_len);
  if (tokens <= seq_len)
    fail_input("the training data has {} tokens; a block of {} needs {}: give more data or a shorter sequence", tokens,
               seq_len, seq_len + 1);
}

BlockOrder::BlockOrder(std::int64_t tokens, std::int64_t seq_len, std::uint64_t seed) : seed_(seed) {
  check_block(tokens, seq_len);
  blocks_ = (tokens - 1) / seq_len;
}

std::int64_t BlockOrder::block_at(std::int64_t position) {
  HEADSCOPE_CHECK(position >= 0, "position {}", position);
  const std::int64_t epoch = position / blocks_;
  if (epoch_ != epoch) {
    order_ = NumpyGenerator(mixed_seed(seed_, static_cast<std::uint64_t>(epoch))).choice(blocks_, blocks_);
    epoch_ = epoch;
  }
  return order_[static_cast<std::size_t>(position % blocks_)];
}

void fill_batch(const Tokens& tokens, BlockOrder& order, std::int64_t position, std::int64_t batch,
                std::int64_t seq_len, std::int64_t* inputs, std::int64_t* targets) {
  for (std::int64_t row = 0; row < batch; ++row)
    fill_block(tokens, order.block_at(position + row), seq_len, inputs + row * seq_len, targets + row * seq_len);
}

std::int64_t tokens_for_batches(std::int64_t batches, std::int64_t batch, std::int64_t seq_len) {
  return batches * batch * seq_len + 1;
}

void check_fixed_batches(std::int64_t tokens, std::int64_t batches, std::int64_t batch, std::int64_t seq_len) {
  const std::int64_t needed = tokens_for_batches(batches, batch, seq_len);
  if (tokens < needed)
    fail_input(
        "the validation data has {} tokens; {} batches of {} x {} need {}: give more data or raise "
        "data.validation_share",
        tokens, batches, batch, seq_len, needed);
}

std::vector<std::int64_t> fixed_blocks(std::int64_t tokens, std::int64_t batches, std::int64_t batch,
                                       std::int64_t seq_len, bool sampled) {
  check_fixed_batches(tokens, batches, batch, seq_len);
  constexpr std::uint64_t seed = 0;  // the same blocks for every seed of training
  if (sampled) return NumpyGenerator(seed).choice((tokens - 1) / seq_len, batches * batch);
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(batches * batch));
  std::iota(blocks.begin(), blocks.end(), 0);
  return blocks;
}

void fill_blocks(const Tokens& tokens, std::span<const std::int64_t> blocks, std::int64_t seq_len, std::int64_t* inputs,
                 std::int64_t* targets) {
  for (const std::int64_t block : blocks) {
    fill_block(tokens, block, seq_len, inputs, targets);
    inputs += seq_len;
    targets += seq_len;
  }
}

std::int64_t count_documents(std::span<const std::int64_t> starts, std::span<const std::int64_t> blocks,
                             std::int64_t seq_len) {
  std::set<std::ptrdiff_t> documents;
  for (const std::int64_t block : blocks) {
    const auto first = std::ranges::upper_bound(starts, block * seq_len) - starts.begin() - 1;
    const auto end = std::ranges::lower_bound(starts, (block + 1) * seq_len) - starts.begin();
    for (auto document = first; document < end; ++document) documents.insert(document);
  }
  return static_cast<std::int64_t>(documents.size());
}

}  // namespace headscope
