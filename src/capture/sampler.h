// Which positions of a text are kept, and the buckets that they fall into. Queries and keys of a layer have a choice of
// their own, which all their heads share. The choices are those of the public program qk-sniffer (V. Shcherbakov), row
// for row.
#pragma once

#include <cstdint>
#include <vector>

#include "capture/options.h"

namespace headscope {

class PositionSampler {
 public:
  explicit PositionSampler(const CaptureOptions& options);

  //   uniform, all   position / bucket_size
  //   log            max(⌊log2(position + 1)⌋, ⌈log2 bucket_size⌉)
  [[nodiscard]] std::int32_t bucket(std::int64_t position) const;

  // The positions 0 … length - 1 of a text that are kept, ascending. `kind` is q or k. A position is kept when u < p: u
  // is uniform, p is base_rate / bucket_size (uniform) or base_rate / 2^bucket (log), 1 at most.
  [[nodiscard]] std::vector<std::int32_t> kept(std::int64_t example_id, std::int64_t layer, char kind,
                                               std::int64_t length) const;

  // Rows that a text of this length gives on average.
  [[nodiscard]] double expected(std::int64_t length) const;

  // The size of a bucket as it is used: log takes the next power of two.
  [[nodiscard]] std::int64_t bucket_size() const { return bucket_size_; }

 private:
  [[nodiscard]] float probability(std::int64_t position) const;

  Sampler kind_;
  std::int64_t bucket_size_;
  std::int32_t least_bucket_ = 0;  // of log
  double base_rate_;
};

}  // namespace headscope
