#include "figures/table_limits.h"

#include "core/error.h"

namespace headscope {

void check_integers(const Integers& values, std::string_view column, std::int64_t most) {
  for (const std::int64_t value : values)
    if (value < 0 || value >= most) fail_input("column '{}' holds {}; figures show 0 to {}", column, value, most - 1);
}

void check_heads(const Table& table) {
  check_integers(table.integers("layer"), "layer", most_layers);
  check_integers(table.integers("q_head"), "q_head", most_heads);
}

void check_tiles(std::int64_t layers, std::int64_t heads) {
  if (layers * heads > most_tiles)
    fail_input("columns 'layer' and 'q_head' span {} layers of {} heads; a map shows {} heads", layers, heads,
               most_tiles);
}

}  // namespace headscope
