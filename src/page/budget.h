// What a page leaves out so that its file stays small, and which moments it keeps.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "heads/metrics.h"
#include "page/block.h"

namespace headscope {

inline constexpr std::size_t default_moments = 300;

// How much a page holds.
struct Detail {
  BlockPrecision precision;
  std::size_t moments = default_moments;  // of each source, at most
  bool all_attention = true;              // false: that of chosen heads and of heads with a role
  bool training_batches = true;           // false: where probes were measured, these alone
};

// From the most to the least. `moments`: the number that was asked for; then it stays.
std::vector<Detail> details(bool exact, std::optional<std::size_t> moments);

// At most `most` places of `moments`, in order: the first and the last; those at a step of `changes` (at most half of
// the room, evenly spaced among them); of the rest half at equal distances in tokens, half at equal distances in the
// logarithm of tokens. Updates instead of tokens where these are not known.
std::vector<std::size_t> kept_moments(std::span<const Moment> moments, const std::set<std::int64_t>& changes,
                                      std::size_t most);

}  // namespace headscope
