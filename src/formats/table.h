// A table in memory: named columns of equal length. The one writer and reader of CSV.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace headscope {

using Integers = std::vector<std::int64_t>;
using Numbers = std::vector<double>;  // NaN stands for a missing value
using Texts = std::vector<std::string>;
// Parquet only. A row of a list has any length.
using Vectors = std::vector<std::vector<double>>;
using FloatVectors = std::vector<std::vector<float>>;  // written only: they are read as Vectors
using TextLists = std::vector<std::vector<std::string>>;
using OptionalIntegers = std::vector<std::optional<std::int64_t>>;  // written only: they are read as Numbers

using ColumnValues = std::variant<Integers, Numbers, Texts, Vectors, FloatVectors, TextLists, OptionalIntegers>;

struct Column {
  std::string name;
  ColumnValues values;
};

class Table {
 public:
  explicit Table(std::string origin = "table") : origin_(std::move(origin)) {}

  Table& add(std::string name, ColumnValues values);

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] const std::vector<Column>& columns() const { return columns_; }
  // A column by name. Throws Error(Fault::input) naming the table and the column when it is absent or of another type.
  [[nodiscard]] const Integers& integers(std::string_view name) const;
  [[nodiscard]] Numbers numbers(std::string_view name) const;  // integers are converted
  [[nodiscard]] const Texts& texts(std::string_view name) const;
  [[nodiscard]] const Vectors& vectors(std::string_view name) const;
  [[nodiscard]] const TextLists& text_lists(std::string_view name) const;

 private:
  [[nodiscard]] const Column& column(std::string_view name) const;

  std::string origin_;
  std::vector<Column> columns_;
  std::size_t rows_ = 0;
};

// A table that grows row by row. Columns of these types, under these names: Rows<std::int64_t, double> rows({"step",
// "loss"}).
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

// Comma, LF, a header; numbers in shortest round-trip form; missing values empty; texts quoted where they must be.
// A column of Parquet's own types is refused, by an Error(Fault::runtime): such a table is Parquet.
std::string to_csv(const Table& table);

// A column is integer when every cell is one, a number when every cell is one or empty, otherwise text.
// `origin` names the table in errors, which give line and column.
Table parse_csv(std::string_view text, const std::string& origin);
Table read_csv(const std::filesystem::path& file);

}  // namespace headscope
