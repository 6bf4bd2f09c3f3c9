// Rows of a table that grow one by one.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "formats/table.h"

namespace headscope {

// Columns of these types, under these names: Rows<std::int64_t, double> rows({"step", "loss"}).
template <class... Values>
class Rows {
 public:
  explicit Rows(const std::array<const char*, sizeof...(Values)>& names) : names_(names) {}

  void add(Values... values) {
    std::apply([&](auto&... columns) { (columns.push_back(std::move(values)), ...); }, columns_);
  }
  [[nodiscard]] std::size_t size() const { return std::get<0>(columns_).size(); }

  // All rows; none are left.
  Table take() {
    Table table;
    std::size_t i = 0;
    std::apply([&](auto&... columns) { (table.add(names_[i++], std::exchange(columns, {})), ...); }, columns_);
    return table;
  }

 private:
  std::array<const char*, sizeof...(Values)> names_;
  std::tuple<std::vector<Values>...> columns_;
};

}  // namespace headscope
