#include "heads/roles/choice.h"

#include <algorithm>

#include "core/lists.h"

namespace headscope {
namespace {

// The heads of each role, the clearest first.
std::vector<std::vector<std::size_t>> by_clarity(const RolesResult& roles) {
  std::vector<std::vector<std::size_t>> heads(roles.definition.roles.size());
  for (std::size_t i = 0; i < roles.heads.size(); ++i)
    if (const std::size_t label = roles.heads[i].label; label < heads.size()) heads[label].push_back(i);
  for (auto& of_role : heads)
    std::ranges::stable_sort(of_role, std::ranges::greater(), [&](std::size_t i) { return roles.heads[i].clarity; });
  return heads;
}

}  // namespace

HeadChoice choose_heads(const RolesResult& roles, std::size_t most) {
  HeadChoice choice;
  const std::vector<std::vector<std::size_t>> heads = by_clarity(roles);
  for (std::size_t rank = 0; rank < roles.heads.size(); ++rank)
    for (const auto& of_role : heads)
      if (rank < of_role.size() && choice.heads.size() < most) choice.heads.push_back(of_role[rank]);
  choice.with_role = choice.heads.size();
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < roles.heads.size(); ++i)
    if (roles.heads[i].label == heads.size()) others.push_back(i);
  choice.all_with_role = roles.heads.size() - others.size();
  const std::size_t room = most - choice.heads.size();
  if (room == 1 && !others.empty()) choice.heads.push_back(others[others.size() / 2]);
  if (room > 1)
    for (const std::size_t place : evenly_spaced(others.size(), room)) choice.heads.push_back(others[place]);
  std::ranges::sort(choice.heads);
  return choice;
}

}  // namespace headscope
