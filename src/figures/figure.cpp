#include "figures/figure.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"

namespace headscope {
namespace {

bool in_rows(const Mark& mark, std::size_t row) {
  return !mark.rows || (mark.rows->first <= row && row <= mark.rows->second);
}

// What a mark shows of its table.
struct Shown {
  Extent x, y, colour;
  std::size_t rows = 0;  // that have all that the mark needs
};

Shown shown_by(const Figure& figure, const Mark& mark) {
  const Table& table = data_of(figure, mark);
  const Numbers x = table.numbers(mark.x);
  std::vector<Numbers> heights;
  for (const std::string& column : {mark.y, mark.low, mark.high})
    if (!column.empty()) heights.push_back(table.numbers(column));
  Shown shown;
  if (mark.kind == Mark::Kind::box && mark.low.empty()) shown.y.add(0);
  if (mark.colour.role == Colour::scale && mark.colour.column.empty()) shown.colour.add(mark.colour.value);
  const Numbers colours = mark.colour.column.empty() ? Numbers() : table.numbers(mark.colour.column);
  for (std::size_t row = 0; row < x.size(); ++row) {
    if (!in_rows(mark, row)) continue;
    bool whole = can_be_shown(x[row]);
    shown.x.add(x[row]);
    for (const Numbers& values : heights) {
      shown.y.add(values[row]);
      whole = whole && can_be_shown(values[row]);
    }
    if (!colours.empty()) shown.colour.add(colours[row]);
    if (whole) ++shown.rows;
  }
  return shown;
}

std::set<std::string> tables_read(const Figure& figure) {
  std::set<std::string> names;
  for (const Panel& panel : figure.panels)
    for (const Mark& mark : panel.marks) names.insert(mark.data);
  return names;
}

// Marks without a row, panels without a mark, and the tables that only those read.
void leave_out_empty(Figure& figure) {
  const auto before = tables_read(figure);
  for (Panel& panel : figure.panels) {
    std::erase_if(panel.marks, [&](const Mark& mark) { return shown_by(figure, mark).rows == 0; });
    std::erase_if(panel.references, [](const Reference& line) { return !std::isfinite(line.y); });
  }
  std::erase_if(figure.panels, [](const Panel& panel) { return panel.marks.empty(); });
  const auto after = tables_read(figure);
  std::erase_if(figure.data,
                [&](const FigureData& one) { return before.contains(one.name) && !after.contains(one.name); });
}

std::size_t rows_of(const Figure& figure) {
  return (figure.panels.size() + figure.grid.columns - 1) / figure.grid.columns;
}

void find_grid(Figure& figure) {
  Grid& grid = figure.grid;
  const std::size_t panels = figure.panels.size();
  if (grid.columns > 0) return;
  grid.columns = panels <= 4 ? std::min<std::size_t>(panels, 2) : (panels + 1) / 2;
  if (panels > 4 && grid.width == 0) grid.width = 192;
  if (panels > 1 && grid.height == 0) grid.height = 140;
}

// Small panels have fewer tics, and so have long numbers that stand beside each other.
int steps_of(const Axis& axis, const Extent& shown, std::size_t panels, bool is_x) {
  if (axis.kind != Axis::integers) return panels == 1 ? 6 : is_x ? 4 : panels == 2 ? 5 : 4;
  if (panels > 2) return 1;
  if (!is_x) return panels == 1 ? 8 : 5;
  const double longest = std::max(std::fabs(shown.low) * (shown.low < 0 ? 10 : 1), std::fabs(shown.high));
  return std::clamp(32 / static_cast<int>(fmt::formatted_size("{:.0f}", longest)), 2, panels == 1 ? 16 : 8);
}

void fit_axes(Figure& figure) {
  std::map<std::size_t, Extent> of_x, of_y;
  Extent of_colours;
  bool has_scale = false;
  for (const Panel& panel : figure.panels) {
    Extent &x = of_x[panel.x.group], &y = of_y[panel.y.group];
    x.add(panel.x.include);
    y.add(panel.y.include);
    for (const Mark& mark : panel.marks) {
      const Shown shown = shown_by(figure, mark);
      x.add(shown.x);
      y.add(shown.y);
      of_colours.add(shown.colour);
      has_scale = has_scale || mark.colour.role == Colour::scale;
    }
    for (const Reference& line : panel.references) {
      if (!line.diagonal) y.add(line.y);
      if (line.diagonal) x.add(y), y = x;
    }
  }
  for (Panel& panel : figure.panels) {
    const Extent &x = of_x[panel.x.group], &y = of_y[panel.y.group];
    panel.x = fitted(panel.x, x, steps_of(panel.x, x, figure.grid.columns, true));
    panel.y = fitted(panel.y, y, steps_of(panel.y, y, rows_of(figure), false));
  }
  if (!has_scale) figure.colours.reset();
  if (figure.colours) figure.colours->axis = fitted(figure.colours->axis, of_colours, 12);
}

// A panel of cells alone is as high as makes them squares, within limits.
void find_size_of_cells(Figure& figure) {
  Grid& grid = figure.grid;
  const Panel& panel = figure.panels[0];
  if (figure.panels.size() > 1 || grid.height > 0 || panel.marks[0].kind != Mark::Kind::cell) return;
  const double columns = panel.x.high - panel.x.low, rows = panel.y.high - panel.y.low;
  grid.aspect = rows / columns;
  grid.most_height = std::clamp(60 * rows, 176.0, 380.0);
  grid.page = columns > 40;
}

void find_sizes_of_points(const Figure& figure, Panel& panel) {
  std::size_t points = 0;
  for (const Mark& mark : panel.marks)
    if (mark.kind == Mark::Kind::points) points += shown_by(figure, mark).rows;
  const double size = points <= 40 ? 0.7 : points <= 100 ? 0.5 : points <= 400 ? 0.38 : points <= 1000 ? 0.3 : 0.22;
  for (Mark& mark : panel.marks)
    if (mark.kind == Mark::Kind::points && mark.size == 0) mark.size = size;
}

}  // namespace

const Table& data_of(const Figure& figure, const Mark& mark) {
  const auto found = std::ranges::find(figure.data, mark.data, &FigureData::name);
  HEADSCOPE_CHECK(found != figure.data.end(), "figure {}: no data '{}'", figure.name, mark.data);
  return found->table;
}

Figure completed(Figure figure) {
  leave_out_empty(figure);
  if (figure.panels.empty()) figure.data.clear();
  if (figure.panels.empty()) return figure;
  find_grid(figure);
  fit_axes(figure);
  find_size_of_cells(figure);
  for (Panel& panel : figure.panels) {
    find_sizes_of_points(figure, panel);
    for (Reference& line : panel.references)
      if (!line.name.empty())
        panel.labels.push_back({.text = std::exchange(line.name, {}), .place = Label::beside, .y = line.y});
  }
  return figure;
}

void check_integers(const Integers& values, std::string_view column, std::int64_t most) {
  for (const std::int64_t value : values)
    if (value < 0 || value >= most) fail_input("column '{}' holds {}; figures show 0 to {}", column, value, most - 1);
}

void check_heads(const Table& table) {
  check_integers(table.integers("layer"), "layer", most_layers);
  check_integers(table.integers("q_head"), "q_head", most_heads);
}

}  // namespace headscope
