// Where each captured row stands: its position and its bucket. Shuffled within texts, they say nothing of the vectors
// any more, and the vectors stay the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "formats/captured_vectors.h"

namespace headscope {

struct RowLabels {
  std::span<const std::int64_t> bucket, position;  // of each row of the file
};

inline RowLabels labels_of(const CapturedVectors& captured) {
  return {captured.bucket, captured.position};
}

// Texts in order of first appearance. The m rows of a text, in order, take over the labels of its rows
// generator.choice(m, m, replace=False).
class ShuffledLabels {
 public:
  ShuffledLabels(const CapturedVectors& captured, NumpyGenerator& generator);
  [[nodiscard]] RowLabels view() const { return {bucket_, position_}; }

 private:
  std::vector<std::int64_t> bucket_, position_;
};

enum class Side : std::uint64_t { queries, keys };

// default_rng(mixed_seed(mixed_seed(mixed_seed(seed, layer), head), side)), where `head` is that of the side and the
// sides are 0 and 1: query heads that share a key head share its shuffled keys.
NumpyGenerator shuffle_generator(std::uint64_t seed, std::int64_t layer, std::int64_t head, Side side);

}  // namespace headscope
