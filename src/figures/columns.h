// A table from a list of structs: a row for each, a column for each pair of a name and a member or function.
//   table_of(heads, "layer", &HeadValue::layer, "value", &HeadValue::value)
#pragma once

#include <functional>
#include <type_traits>
#include <vector>

#include "formats/table.h"

namespace headscope {

template <class Item, class Get, class... More>
void add_columns(Table& table, const std::vector<Item>& items, const char* name, const Get& get, const More&... more) {
  std::vector<std::remove_cvref_t<std::invoke_result_t<Get, const Item&>>> column;
  for (const Item& item : items) column.push_back(std::invoke(get, item));
  table.add(name, std::move(column));
  if constexpr (sizeof...(more) > 0) add_columns(table, items, more...);
}

template <class Item, class... Columns>
Table table_of(const std::vector<Item>& items, const Columns&... columns) {
  Table table("figure");
  add_columns(table, items, columns...);
  return table;
}

}  // namespace headscope
