// Any bytes are read as a table or refused with one line; a table is written and read as the same values.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>

#include "core/error.h"
#include "formats/parquet_table.h"

using namespace headscope;

namespace {

void check(bool condition) {
  if (!condition) std::abort();
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}
bool same(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) { return same(x, y); });
}
bool same(const Vectors& a, const Vectors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) { return same(x, y); });
}
bool same(const auto& a, const auto& b) {
  return a == b;
}

void check_same(const Table& a, const Table& b) {
  check(a.rows() == b.rows() && a.columns().size() == b.columns().size());
  for (std::size_t c = 0; c < a.columns().size(); ++c) {
    const Column &before = a.columns()[c], &after = b.columns()[c];
    check(before.name == after.name && before.values.index() == after.values.index());
    std::visit(
        [&](const auto& values) {
          check(values.size() == a.rows());
          check(same(values, std::get<std::decay_t<decltype(values)>>(after.values)));
        },
        before.values);
  }
}

// Values of a table, and bytes of its texts.
std::size_t size_of(const Table& table) {
  std::size_t size = 0;
  for (const Column& column : table.columns()) {
    size += table.rows();
    if (const auto* texts = std::get_if<Texts>(&column.values))
      for (const std::string& text : *texts) size += text.size();
    if (const auto* vectors = std::get_if<Vectors>(&column.values))
      for (const Numbers& vector : *vectors) size += vector.size();
  }
  return size;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Table table;
  try {
    table = parse_parquet(std::as_bytes(std::span(data, size)), "fuzz");
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strchr(error.what(), '\n') == nullptr);
    check(std::strlen(error.what()) < 1000);
    return 0;
  }
  check_same(table, table);
  constexpr std::size_t small = 1 << 16;  // larger ones take too long to be written for every input
  if (table.columns().empty() || size_of(table) > small) return 0;
  const std::string file = to_parquet(table);
  check_same(table, parse_parquet(std::as_bytes(std::span(file)), "again"));
  return 0;
}
