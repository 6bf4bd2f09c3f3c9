// Converts tables to Arrow and back, for the readers and writers of Parquet.
#pragma once

#include <arrow/api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "formats/table.h"

namespace headscope {

// int64, double, string and list columns that are never null, and int64 that may be.
std::shared_ptr<arrow::Table> arrow_table(const Table& table);

// The bytes that one value of this type takes in a Table; 0 for types that a Table cannot hold (see read_parquet).
std::size_t value_bytes(const arrow::DataType& type);

// Adds the columns that a Table can hold; the others are left out. Throws std::runtime_error when they take more than
// `room` bytes: a dictionary of one long text makes a large table of a small file.
void add_columns(Table& table, const arrow::Table& columns, std::int64_t room);

}  // namespace headscope
