// The role of every query head at one moment.
#pragma once

#include <span>
#include <vector>

#include "heads/roles/definition.h"

namespace headscope {

struct HeadRole {
  std::size_t label = 0;  // index of a role of the definition; their number: mixed
  // Geometric mean of the scores that the role asks for: 1 is a perfect example. NaN for mixed: there is no role whose
  // example it could be.
  double clarity = 0;
  HeadScores scores;
};

// The first role whose minimums all hold, otherwise mixed.
HeadRole role_of(const HeadScores& scores, const RoleDefinition& definition);

// [layer][head]; `head_dimension` as in scores_at.
std::vector<HeadRole> roles_at(const Tracks& tracks, std::size_t moment, const RoleDefinition& definition,
                               std::int64_t head_dimension);

// Heads by label, mixed last.
std::vector<std::int64_t> count_labels(std::span<const std::size_t> labels, const RoleDefinition& definition);

}  // namespace headscope
