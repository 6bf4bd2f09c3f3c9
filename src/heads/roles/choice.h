// Some of many heads, to look at one by one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "heads/roles/roles.h"

namespace headscope {

struct HeadChoice {
  std::vector<std::size_t> heads;  // layer · query heads + head, ascending
  std::size_t with_role = 0;       // so many of them have one
  std::size_t all_with_role = 0;   // of those to choose from
};

// At most `most` of the heads in `among`. First those that have a role: of each role its clearest head, then of each
// its second clearest, and so on. Then others, at equal distances over layers and heads.
HeadChoice choose_heads(const RolesResult& roles, std::span<const std::size_t> among, std::size_t most);
// The same of all heads.
HeadChoice choose_heads(const RolesResult& roles, std::size_t most);
// At most `most` at equal distances.
std::vector<std::size_t> evenly_chosen(std::span<const std::size_t> among, std::size_t most);

}  // namespace headscope
