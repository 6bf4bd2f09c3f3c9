#include "heads/roles/choice.h"

#include <algorithm>
#include <numeric>

#include "core/lists.h"

namespace headscope {
namespace {

// The heads of each role, the clearest first.
std::vector<std::vector<std::size_t>> by_clarity(const RolesResult& roles, std::span<const std::size_t> among) {
  std::vector<std::vector<std::size_t>> heads(roles.definition.roles.size());
  for (const std::size_t i : among)
    if (const std::size_t label = roles.heads[i].label; label < heads.size()) heads[label].push_back(i);
  for (auto& of_role : heads)
    std::ranges::stable_sort(of_role, std::ranges::greater(), [&](std::size_t i) { return roles.heads[i].clarity; });
  return heads;
}

}  // namespace

std::vector<std::size_t> evenly_chosen(std::span<const std::size_t> among, std::size_t most) {
  if (among.empty() || most == 0) return {};
  if (most == 1) return {among[among.size() / 2]};
  std::vector<std::size_t> chosen;
  for (const std::size_t place : evenly_spaced(among.size(), most)) chosen.push_back(among[place]);
  return chosen;
}

HeadChoice choose_heads(const RolesResult& roles, std::span<const std::size_t> among, std::size_t most) {
  HeadChoice choice;
  const std::vector<std::vector<std::size_t>> heads = by_clarity(roles, among);
  for (std::size_t rank = 0; rank < among.size(); ++rank)
    for (const auto& of_role : heads)
      if (rank < of_role.size() && choice.heads.size() < most) choice.heads.push_back(of_role[rank]);
  choice.with_role = choice.heads.size();
  std::vector<std::size_t> others;
  for (const std::size_t i : among)
    if (roles.heads[i].label == heads.size()) others.push_back(i);
  choice.all_with_role = among.size() - others.size();
  const std::vector<std::size_t> more = evenly_chosen(others, most - choice.heads.size());
  choice.heads.insert(choice.heads.end(), more.begin(), more.end());
  std::ranges::sort(choice.heads);
  return choice;
}

HeadChoice choose_heads(const RolesResult& roles, std::size_t most) {
  std::vector<std::size_t> all(roles.heads.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return choose_heads(roles, all, most);
}

}  // namespace headscope
