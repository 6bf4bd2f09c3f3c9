// Some of many heads, to look at one by one.
#pragma once

#include <cstddef>
#include <vector>

#include "heads/roles/roles.h"

namespace headscope {

struct HeadChoice {
  std::vector<std::size_t> heads;  // layer · query heads + head, ascending
  std::size_t with_role = 0;       // so many of them have one
  std::size_t all_with_role = 0;   // of all heads
};

// At most `most` heads. First those that have a role: of each role its clearest head, then of each its second clearest,
// and so on. Then others, at equal distances over layers and heads.
HeadChoice choose_heads(const RolesResult& roles, std::size_t most);

}  // namespace headscope
