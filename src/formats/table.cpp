#include "formats/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/missing.h"

namespace headscope {
namespace {

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void append_number(std::string& out, double value) {
  if (std::isnan(value)) return;
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, result.ptr);
}

void append_text(std::string& out, const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

void append_cell(std::string& out, const Column& column, std::size_t row) {
  if (const auto* integers = std::get_if<Integers>(&column.values)) {
    fmt::format_to(std::back_inserter(out), "{}", (*integers)[row]);
  } else if (const auto* numbers = std::get_if<Numbers>(&column.values)) {
    append_number(out, (*numbers)[row]);
  } else {
    append_text(out, std::get<Texts>(column.values)[row]);
  }
}

// Reads one CSV record after another, keeping count of lines for messages.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  [[nodiscard]] bool done() const { return place_ >= text_.size(); }
  [[nodiscard]] std::size_t line() const { return line_; }

  std::vector<std::string> record() {
    std::vector<std::string> cells;
    for (;;) {
      cells.push_back(cell());
      const char end = done() ? '\n' : text_[place_];
      ++place_;
      if (end == ',') continue;
      ++line_;
      return cells;
    }
  }

 private:
  // Leaves place_ on the comma or line end behind the cell.
  std::string cell() {
    if (!done() && text_[place_] == '"') return quoted_cell();
    const std::size_t end = std::min(text_.find_first_of(",\n", place_), text_.size());
    std::string_view cell = text_.substr(place_, end - place_);
    if (cell.ends_with('\r')) cell.remove_suffix(1);
    place_ = end;
    return std::string(cell);
  }

  std::string quoted_cell() {
    const std::size_t first_line = line_;
    std::string cell;
    for (++place_; !done(); ++place_) {
      const char c = text_[place_];
      if (c == '\n') ++line_;
      if (c != '"') {
        cell += c;
      } else if (place_ + 1 < text_.size() && text_[place_ + 1] == '"') {
        cell += text_[++place_];
      } else {
        ++place_;
        if (!done() && text_[place_] == '\r') ++place_;
        if (!done() && text_[place_] != ',' && text_[place_] != '\n')
          fail_input("{}: line {}: text after a closing quote; expected a comma or the end of the line", origin_,
                     line_);
        return cell;
      }
    }
    fail_input("{}: line {}: a quoted cell is never closed", origin_, first_line);
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t place_ = 0;
  std::size_t line_ = 1;
};

// The narrowest type that holds every cell: integers, numbers (empty is missing), text.
ColumnValues typed(Texts cells) {
  Integers integers;
  Numbers numbers;
  bool all_integer = true;
  for (const std::string& cell : cells) {
    if (all_integer) {
      if (const auto integer = parse_number<std::int64_t>(cell))
        integers.push_back(*integer);
      else
        all_integer = false;
    }
    const auto number = cell.empty() ? std::optional(missing) : parse_number<double>(cell);
    if (!number) return cells;
    numbers.push_back(*number);
  }
  if (all_integer && !cells.empty()) return integers;
  return numbers;
}

}  // namespace

Table& Table::add(std::string name, ColumnValues values) {
  const std::size_t rows = std::visit([](const auto& all) { return all.size(); }, values);
  HEADSCOPE_CHECK(columns_.empty() || rows == rows_, "column {} has {} rows, the table {}", name, rows, rows_);
  rows_ = rows;
  columns_.push_back({std::move(name), std::move(values)});
  return *this;
}

bool Table::has(std::string_view name) const {
  return std::any_of(columns_.begin(), columns_.end(), [&](const Column& column) { return column.name == name; });
}

const Column& Table::column(std::string_view name) const {
  for (const Column& column : columns_)
    if (column.name == name) return column;
  fail_input("{}: there is no column '{}'", origin_, name);
}

const Integers& Table::integers(std::string_view name) const {
  const auto* values = std::get_if<Integers>(&column(name).values);
  static const Integers none;  // a table without rows has columns of no particular type
  if (values == nullptr && rows_ == 0) return none;
  if (values == nullptr) fail_input("{}: column '{}' holds something else than whole numbers", origin_, name);
  return *values;
}

Numbers Table::numbers(std::string_view name) const {
  const auto& values = column(name).values;
  if (const auto* integers = std::get_if<Integers>(&values)) return Numbers(integers->begin(), integers->end());
  if (const auto* numbers = std::get_if<Numbers>(&values)) return *numbers;
  fail_input("{}: column '{}' holds something else than numbers", origin_, name);
}

const Texts& Table::texts(std::string_view name) const {
  if (const auto* values = std::get_if<Texts>(&column(name).values)) return *values;
  fail_input("{}: column '{}' holds numbers, expected text", origin_, name);
}

const Vectors& Table::vectors(std::string_view name) const {
  if (const auto* values = std::get_if<Vectors>(&column(name).values)) return *values;
  fail_input("{}: column '{}' holds single values, expected vectors", origin_, name);
}

const TextLists& Table::text_lists(std::string_view name) const {
  if (const auto* values = std::get_if<TextLists>(&column(name).values)) return *values;
  fail_input("{}: column '{}' holds something else than lists of texts", origin_, name);
}

std::string to_csv(const Table& table) {
  std::string out;
  const auto& columns = table.columns();
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const ColumnValues& values = columns[c].values;
    HEADSCOPE_CHECK(std::holds_alternative<Integers>(values) || std::holds_alternative<Numbers>(values) ||
                        std::holds_alternative<Texts>(values),
                    "column {} of a CSV holds vectors", columns[c].name);
    if (c != 0) out += ',';
    append_text(out, columns[c].name);
  }
  out += '\n';
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (c != 0) out += ',';
      append_cell(out, columns[c], row);
    }
    out += '\n';
  }
  return out;
}

Table parse_csv(std::string_view text, const std::string& origin) {
  CsvReader reader(text, origin);
  if (reader.done()) fail_input("{}: the file is empty; expected a header line", origin);
  const std::vector<std::string> names = reader.record();
  std::vector<Texts> cells(names.size());
  while (!reader.done()) {
    const std::size_t line = reader.line();
    std::vector<std::string> record = reader.record();
    if (record.size() != names.size())
      fail_input("{}: line {}: {} cells; expected {} as in the header", origin, line, record.size(), names.size());
    for (std::size_t c = 0; c < names.size(); ++c) cells[c].push_back(std::move(record[c]));
  }
  Table table(origin);
  for (std::size_t c = 0; c < names.size(); ++c) table.add(names[c], typed(std::move(cells[c])));
  return table;
}

Table read_csv(const std::filesystem::path& file) {
  return parse_csv(read_file(file), file.string());
}

}  // namespace headscope
