// Tables as Parquet files, for pandas, polars, DuckDB and ourselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "formats/table.h"

namespace headscope {

// int64, double, string, list<double>, list<float> and list<string> columns without nulls (NaN stays NaN), and
// OptionalIntegers as int64 with nulls; zstd, page checksums, row groups of
// 2^20 rows. The same rows give the same bytes. The bytes of one file:
std::string to_parquet(const Table& table);

// Writes the rows of the files, one after another and at most `rows` of them, to one file, atomically. Its bytes do not
// depend on how the rows were spread over the files. All files have the columns of the first. Memory holds about one
// row group at a time. Throws Error(Fault::runtime) naming `out` when it cannot be written, Error(Fault::input) naming
// the file that cannot be read.
void join_parquet(const std::filesystem::path& out, const std::vector<std::filesystem::path>& files,
                  std::int64_t rows = std::numeric_limits<std::int64_t>::max());

// Rows of one file, from its footer.
std::int64_t parquet_rows(const std::filesystem::path& file);

// A file, or all parts of a folder in order of their names (formats/part_table.h). Whole numbers of any width become
// Integers, or Numbers where one is null or the type is uint64; floats of any width become Numbers, null is NaN; a text
// that is null is empty; lists of floats become Vectors, lists of texts TextLists. Columns of other types are left out. Throws
// Error(Fault::input) naming the file: damaged, its columns are not those of the first part, or its values take more
// memory than files of this size can mean (arrow_input.h).
Table read_parquet(const std::filesystem::path& file_or_folder);

// The same for one file that is in memory already; `origin` is how errors name it.
Table parse_parquet(std::span<const std::byte> bytes, const std::string& origin);

// The named columns of the same tables, a row group at a time: for tables that may be larger than memory. Throws
// Error(Fault::input) naming the file and the column when one is absent.
void scan_parquet(const std::filesystem::path& file_or_folder, const std::vector<std::string>& columns,
                  const std::function<void(const Table&)>& visit);

}  // namespace headscope
