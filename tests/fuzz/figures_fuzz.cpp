// Whatever texts and numbers a run folder holds, the script of a figure does the same as with harmless texts, or the
// figure is refused with one line. Data files have a line for each row and a cell for each column.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "core/error.h"
#include "figures/every_figure.h"
#include "figures/figure_files.h"
#include "figures/gnuplot_skeleton.h"
#include "figures/render.h"

using namespace headscope;
using namespace headscope::test;

namespace {

void check(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "figures_fuzz: %s\n", what);
  std::abort();
}

// Nothing when the figures are refused.
std::optional<std::vector<Figure>> figures_of(const FigureKind& kind, const FigureTexts& texts,
                                              const FigureNumbers& numbers) {
  try {
    return kind.figures(texts, numbers);
  } catch (const Error& error) {
    check(error.fault() == Fault::input && std::strchr(error.what(), '\n') == nullptr, error.what());
    return std::nullopt;
  }
}

bool is_removal(const std::string& by) {
  return by == "gain" || by == "singular" || by == "random";
}

bool is_order(const std::string& order) {
  return order == "smallest" || order == "largest" || order == "random";
}

// As many texts as before, none of which could be code; what surgery knows stays.
FigureTexts harmless(FigureTexts texts) {
  for (std::string* text : {&texts.title, &texts.role, &texts.run_1, &texts.run_2})
    if (!text->empty()) *text = "x";
  if (!is_removal(texts.by)) texts.by.clear();
  if (!is_order(texts.order)) texts.order.clear();
  return texts;
}

void check_data(const std::string& text, std::size_t columns, std::size_t rows) {
  std::size_t lines = 0;
  for (std::size_t from = 0; from < text.size(); ++lines) {
    const std::size_t end = text.find('\n', from);
    check(end != std::string::npos, "the last line does not end");
    const std::string_view line = std::string_view(text).substr(from, end - from);
    check(std::count(line.begin(), line.end(), '\t') + 1 == static_cast<std::ptrdiff_t>(columns), "cells of a line");
    const std::size_t first = line.find_first_not_of(' ');
    check(first == std::string_view::npos || line[first] != '#', "a row is a comment");
    check(std::count(line.begin(), line.end(), '"') % 2 == 0, "quotes of a line");
    for (const char c : line) check(static_cast<unsigned char>(c) >= 0x20 || c == '\t', "a control character");
    from = end + 1;
  }
  check(lines == rows + 1, "lines of a file");
}

void check_scripts(const std::vector<Figure>& hostile, const std::vector<Figure>& expected) {
  check(hostile.size() == expected.size(), "number of figures");
  for (std::size_t i = 0; i < hostile.size(); ++i) {
    const ScriptSkeleton skeleton = skeleton_of(script_of(hostile[i]));
    if (!skeleton.faults.empty()) check(false, skeleton.faults.front().c_str());
    check(skeleton.tokens == skeleton_of(script_of(expected[i])).tokens, "another script");
    for (const FigureData& data : hostile[i].data)
      check_data(to_dat(data.table), data.table.columns().size(), data.table.rows());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider input(data, size);
  const auto& kind = figure_kinds()[input.ConsumeIntegralInRange<std::size_t>(0, figure_kinds().size() - 1)];
  FigureTexts texts;
  for (std::string* text : {&texts.title, &texts.by, &texts.order, &texts.role, &texts.run_1, &texts.run_2})
    *text = input.ConsumeRandomLengthString(64);
  Table cells("texts");
  cells.add("first", Texts{texts.title, texts.by}).add("second", Texts{texts.role, texts.order});
  check_data(to_dat(cells), 2, 2);

  const std::vector<std::uint8_t> bytes = input.ConsumeRemainingBytes<std::uint8_t>();
  const FigureNumbers numbers(bytes);
  const auto expected = figures_of(kind, harmless(texts), numbers);
  const auto figures = figures_of(kind, texts, numbers);
  if (std::strcmp(kind.name, "surgery") == 0 &&
      ((!texts.by.empty() && !is_removal(texts.by)) || (!texts.order.empty() && !is_order(texts.order)))) {
    check(!figures, "surgery takes any text");
    return 0;
  }
  check(figures.has_value() == expected.has_value(), "a text decides whether numbers are refused");
  if (figures) check_scripts(*figures, *expected);
  return 0;
}
