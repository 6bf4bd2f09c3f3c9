// Any text is a table or is refused with one line; writing a table and reading it again keeps every value.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "formats/table.h"

using namespace headscope;

namespace {

void check(bool condition) {
  if (!condition) std::abort();
}

Numbers numbers(const Column& column) {
  if (const auto* integers = std::get_if<Integers>(&column.values)) return {integers->begin(), integers->end()};
  return std::get<Numbers>(column.values);
}

// By place: names may repeat. Numbers that happen to be whole come back as integers.
void check_same(const Table& a, const Table& b) {
  check(a.rows() == b.rows() && a.columns().size() == b.columns().size());
  for (std::size_t c = 0; c < a.columns().size(); ++c) {
    const Column& before = a.columns()[c];
    const Column& after = b.columns()[c];
    check(before.name == after.name);
    if (std::holds_alternative<Texts>(before.values)) {
      check(before.values == after.values);
      continue;
    }
    const Numbers x = numbers(before);
    const Numbers y = numbers(after);
    for (std::size_t i = 0; i < x.size(); ++i) check(x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i])));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Table table;
  try {
    table = parse_csv({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strchr(error.what(), '\n') == nullptr);
    return 0;
  }
  check_same(table, parse_csv(to_csv(table), "again"));
  return 0;
}
