#include "page/nearest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace headscope {

namespace {

struct Gaps {
  double worst = 0, sum = 0;
};

// Between the minimums of a role and lower scores; infinite where a score was not measured.
Gaps gaps_of(const HeadScores& scores, const Role& role) {
  Gaps gaps;
  for (const Minimum& minimum : role.minimums) {
    const double score = scores[minimum.score];
    const double gap =
        std::isfinite(score) ? std::max(0.0, minimum.least - score) : std::numeric_limits<double>::infinity();
    gaps.worst = std::max(gaps.worst, gap);
    gaps.sum += gap;
  }
  return gaps;
}

}  // namespace

std::optional<std::size_t> nearest_head(const RolesResult& roles, std::size_t label) {
  const RoleDefinition alone{"", "", {roles.definition.roles[label]}};  // as if there were no role before it
  std::optional<std::size_t> nearest;
  std::tuple<bool, double, double, double> best;  // has the role, minus the gaps, clarity
  for (std::size_t i = 0; i < roles.heads.size(); ++i) {
    const HeadRole& head = roles.heads[i];
    const Gaps gaps = gaps_of(head.scores, alone.roles[0]);
    const double clarity = role_of(head.scores, alone).clarity;
    if (std::isinf(gaps.worst)) continue;
    const std::tuple value(head.label == label, -gaps.worst, -gaps.sum, std::isnan(clarity) ? 0 : clarity);
    if (nearest && value <= best) continue;
    nearest = i;
    best = value;
  }
  return nearest;
}

std::optional<Moment> role_since(const RoleCourse& course, std::size_t place) {
  const std::vector<MomentLabels>& labels = course.labels;
  std::size_t first = labels.size();
  while (first > 0 && labels[first - 1].labels[place] == course.roles.heads[place].label) --first;
  return labels.size() > 1 && first < labels.size() ? std::optional(labels[first].moment) : std::nullopt;
}

}  // namespace headscope
