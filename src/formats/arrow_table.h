// Tables as Arrow has them, for the readers and writers of Parquet.
#pragma once

#include <arrow/api.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "formats/table.h"

namespace headscope {

// Arrow's failures as exceptions; who knows the file makes an Error of them.
template <class T>
T value_of(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().message());
  return std::move(result).ValueUnsafe();
}

inline void check(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message());
}

// int64, double, string and list<double> columns that are never null.
std::shared_ptr<arrow::Table> arrow_table(const Table& table);

// Adds the columns that a Table can hold (see read_parquet); the others are left out.
void add_columns(Table& table, const arrow::Table& columns);

}  // namespace headscope
