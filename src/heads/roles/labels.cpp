#include "heads/roles/labels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/missing.h"

namespace headscope {

HeadRole role_of(const HeadScores& scores, const RoleDefinition& definition) {
  const auto role = std::ranges::find_if(definition.roles, [&](const Role& one) { return one.holds(scores); });
  const auto label = static_cast<std::size_t>(role - definition.roles.begin());
  if (role == definition.roles.end()) return {label, missing, scores};
  double product = 1;
  for (const Minimum& minimum : role->minimums) product *= scores[minimum.score];
  return {label, std::pow(product, 1.0 / static_cast<double>(role->minimums.size())), scores};
}

std::vector<HeadRole> roles_at(const Tracks& tracks, std::size_t moment, const RoleDefinition& definition,
                               std::int64_t head_dimension) {
  std::vector<HeadRole> roles;
  for (const HeadScores& scores : scores_at(tracks, moment, head_dimension))
    roles.push_back(role_of(scores, definition));
  return roles;
}

std::vector<std::int64_t> count_labels(std::span<const std::size_t> labels, const RoleDefinition& definition) {
  std::vector<std::int64_t> counts(definition.roles.size() + 1);
  for (const std::size_t label : labels) ++counts[label];
  return counts;
}

}  // namespace headscope
