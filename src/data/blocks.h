// Which tokens a training step sees. Block b is tokens [bT, bT + T]: T inputs, and T targets one further on. An epoch
// is every block once, in an order that depends on (seed, epoch); the running count of blocks is the whole state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/tokens.h"

namespace headscope {

// Throws Error(Fault::input) when there are too few tokens for one block.
void check_block(std::int64_t tokens, std::int64_t seq_len);

class BlockOrder {
 public:
  // Throws as check_block does.
  BlockOrder(std::int64_t tokens, std::int64_t seq_len, std::uint64_t seed);

  [[nodiscard]] std::int64_t blocks() const { return blocks_; }
  // The block at this position of the order, at any position; another epoch than the last one costs a shuffle.
  // Epoch e is numpy.random.default_rng(mixed_seed(seed, e)).choice(blocks, blocks, replace=False).
  [[nodiscard]] std::int64_t block_at(std::int64_t position);

 private:
  std::int64_t blocks_;
  std::uint64_t seed_;
  std::optional<std::int64_t> epoch_;  // of order_
  std::vector<std::int64_t> order_;
};

// Blocks position … position + batch - 1 of the order, as [batch, seq_len] inputs and targets.
void fill_batch(const Tokens& tokens, BlockOrder& order, std::int64_t position, std::int64_t batch,
                std::int64_t seq_len, std::int64_t* inputs, std::int64_t* targets);

// The number of tokens that `batches` fixed batches take.
std::int64_t tokens_for_batches(std::int64_t batches, std::int64_t batch, std::int64_t seq_len);

// Throws Error(Fault::input) with the number of tokens needed when there are too few for so many fixed batches.
void check_fixed_batches(std::int64_t tokens, std::int64_t batches, std::int64_t batch, std::int64_t seq_len);

// The blocks of the fixed batches, one batch after another, the same at every call: the first ones in their order in
// the text, or of all blocks numpy.random.default_rng(0).choice(blocks, batches * batch, replace=False). Throws as
// check_fixed_batches does.
std::vector<std::int64_t> fixed_blocks(std::int64_t tokens, std::int64_t batches, std::int64_t batch,
                                       std::int64_t seq_len, bool sampled);

// These blocks as [blocks, seq_len] inputs and targets.
void fill_blocks(const Tokens& tokens, std::span<const std::int64_t> blocks, std::int64_t seq_len, std::int64_t* inputs,
                 std::int64_t* targets);

// The documents that the inputs of these blocks are of, each counted once. `starts`: where documents begin, ascending.
std::int64_t count_documents(std::span<const std::int64_t> starts, std::span<const std::int64_t> blocks,
                             std::int64_t seq_len);

}  // namespace headscope
