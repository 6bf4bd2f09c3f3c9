// What a figure shows: tables, marks that read their columns, axes, panels, labels. It holds no gnuplot, no place on
// the page and no colour, only the colours' roles: the renderer (render.cpp) lays a figure out and writes its script.
//   Figure figure{.name = "loss", .title = "Loss", .data = {{"run", table}}};
//   figure.panels = {{.x = {.kind = Axis::tokens}, .y = {.label = {"nats"}}}};
//   figure.panels[0].marks = {Mark::line("run", "tokens", "loss").named("training")};
// Ends of axes, tics and sizes follow from the columns that the marks read. Marks without values are left out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "figures/axis.h"
#include "figures/theme.h"
#include "formats/table.h"

namespace headscope {

class Console;

// A table that marks read. Its name and those of its columns are ours, never of a file: letters, digits and _, first a
// letter, and nothing that scripts use already.
struct FigureData {
  std::string name;
  Table table;
};

// A colour by its role in the theme, or by a value on the figure's colour scale.
struct Colour {
  enum Role { ink, muted, absent, category, depth, scale, readable };
  Role role = ink;
  std::size_t index = 0;    // of a category, or of a depth: early, middle, final
  double value = 0;         // on the scale; `readable`: black or white, whichever can be read on that colour of areas
  std::string column = {};  // of the scale: each row has its value here
};
const Colour muted = {.role = Colour::muted};
inline Colour category(std::size_t index) {
  return {.role = Colour::category, .index = index};
}
inline Colour by_column(std::string column) {
  return {.role = Colour::scale, .column = std::move(column)};
}
inline Colour by_value(std::int64_t value) {
  return {.role = Colour::scale, .value = static_cast<double>(value)};
}

enum class Dash { solid, dashed, dotted };
enum class PointShape { circle, triangle, square };

// A mark for every row of a table that has values. Those of a panel are drawn in their order.
struct Mark {
  enum class Kind { points, line, band, segment, box, cell, image };
  Kind kind = Kind::points;
  std::string data = {}, x = {}, y = {}, low = {}, high = {};  // a table and its columns
  Colour colour = {};
  std::string name = {};  // in the legend; none: not there
  double width = 1;       // of lines
  double size = 0;        // of points, also along a line; 0: a line without, or points that many others leave room for
  double opacity = 1;
  Dash dash = Dash::solid;
  PointShape shape = PointShape::circle;
  double shift = 0, shift_to = 0, span = 0.8;  // in units of x
  std::string half = {};                       // column of a cell's half width and height
  bool rim = false;                            // a segment that crosses others is set off by a rim of paper
  bool struck = false;                         // a cell without a value: a stroke through it
  std::optional<std::pair<std::size_t, std::size_t>> rows = {};  // first and last; none: all

  // At x, y.
  static Mark points(std::string data, std::string x, std::string y) { return {Kind::points, data, x, y}; }
  // Through x, y; a single value becomes a point.
  static Mark line(std::string data, std::string x, std::string y) { return {Kind::line, data, x, y}; }
  // From low to high along x; a single value becomes a box.
  static Mark band(std::string data, std::string x, std::string low, std::string high) {
    return {Kind::band, data, x, {}, low, high};
  }
  // From (x + shift, low) to (x + shift_to, high).
  static Mark segment(std::string data, std::string x, std::string low, std::string high) {
    return {Kind::segment, data, x, {}, low, high};
  }
  // From low (none: 0) to high, `span` wide, around x + shift.
  static Mark box(std::string data, std::string x, std::string low, std::string high) {
    return {Kind::box, data, x, {}, low, high};
  }
  // Of width and height 1 around x, y, or twice what `half` says; an image has all cells of a grid.
  static Mark cell(std::string data, std::string x, std::string y) { return {Kind::cell, data, x, y}; }
  static Mark image(std::string data, std::string x, std::string y) { return {Kind::image, data, x, y}; }

  Mark coloured(Colour with) const { return changed(&Mark::colour, with); }
  Mark named(std::string as) const { return changed(&Mark::name, as); }
  Mark wide(double units) const { return changed(&Mark::width, units); }
  Mark sized(double units) const { return changed(&Mark::size, units); }
  Mark faded(double to) const { return changed(&Mark::opacity, to); }
  Mark dashed(Dash how = Dash::dashed) const { return changed(&Mark::dash, how); }
  Mark of_rows(std::size_t first, std::size_t last) const { return changed(&Mark::rows, {{first, last}}); }
  Mark spanning(double units) const { return changed(&Mark::span, units); }
  Mark shifted(double from, double to) const { return changed(&Mark::shift, from).changed(&Mark::shift_to, to); }
  template <class Field>
  Mark changed(Field Mark::*field, std::type_identity_t<Field> value) const {
    Mark mark = *this;
    mark.*field = std::move(value);
    return mark;
  }
};

struct Label {
  enum Place {
    centred,  // at x, y
    beside,   // right of the panel at the height of y, moved until no two overlap
    near,     // next to the point x, y, where it covers the fewest others; left out where it would cover another label
  };
  std::vector<std::string> text;  // lines
  Place place = centred;
  double x = 0, y = 0;
  Colour colour = {};
};

// A line across the panel, below the marks: at a height, or the diagonal, which gives both axes one range.
struct Reference {
  double y = 0;  // not finite: left out
  Dash dash = Dash::dashed;
  Colour colour = {};
  bool diagonal = false;
  std::vector<std::string> name = {};  // lines of a label beside it
};

struct Panel {
  std::string title = {};
  Axis x = {}, y = {};
  std::vector<Mark> marks = {};
  std::vector<Reference> references = {};
  std::vector<Label> labels = {};
};

// The colours of marks by value, with a bar that says so; no bar where the axis has one tic.
struct ColourScale {
  enum Colours { sequential, ordered, diverging };  // areas; lines and points of layers or heads; differences
  Colours colours = sequential;
  Axis axis = {};
};

// Panels in rows: numbers stand at the left and at the bottom only. Sizes are in units, see render.h; what is 0 follows
// from the panels.
struct Grid {
  std::size_t columns = 0;       // 0: up to four panels in two columns, more in two rows
  double width = 0, height = 0;  // of a panel
  double aspect = 0;             // height over width
  double most_height = 0;
  bool page = false;  // as wide as a page instead of a column
};

struct Figure {
  std::string name;          // stem of the files: letters, digits and _
  std::string title;         // what it shows
  std::string subject = {};  // whose; may be empty
  std::vector<FigureData> data = {};
  std::vector<Panel> panels = {};
  std::vector<Mark> kinds = {};         // a second part of the legend: marks without data
  std::vector<std::string> notes = {};  // lines below the legend
  std::optional<ColourScale> colours = {};
  Grid grid = {};
  std::string nothing = "no values";  // what it says when no mark has a value: a folder of figures is always complete
};

// The figure as it is drawn: without marks and panels that have no values and without their data, with every axis
// fixed and every size known. Without panels, it says `nothing`.
Figure completed(Figure figure);

// The table that a mark reads. An internal error when the figure has none of that name.
const Table& data_of(const Figure& figure, const Mark& mark);

// A table from a list of structs: a row for each, a column for each pair of a name and a member or function.
//   table_of(heads, "layer", &HeadValue::layer, "value", &HeadValue::value)
template <class Item>
void add_columns(Table&, const std::vector<Item>&) {}
template <class Item, class Get, class... More>
void add_columns(Table& table, const std::vector<Item>& items, const char* name, const Get& get, const More&... more) {
  std::vector<std::remove_cvref_t<std::invoke_result_t<Get, const Item&>>> column;
  for (const Item& item : items) column.push_back(std::invoke(get, item));
  table.add(name, std::move(column));
  add_columns(table, items, more...);
}
template <class Item, class... Columns>
Table table_of(const std::vector<Item>& items, const Columns&... columns) {
  Table table("figure");
  add_columns(table, items, columns...);
  return table;
}

// What figures accept of the numbers in a table. A table may come from anywhere; a number far beyond those of any model
// would ask for all memory, or for an image that no program can open.
constexpr std::int64_t most_layers = 4096;
constexpr std::int64_t most_heads = 1024;            // of a layer
constexpr std::int64_t most_bucket = 1'000'000'000;  // buckets have any numbers, also positions in a text

// All of them from 0 to most - 1; else an Error(Fault::input) with the column and the value: the caller knows the file.
void check_integers(const Integers& values, std::string_view column, std::int64_t most);
// The columns layer and q_head.
void check_heads(const Table& table);

struct Drawn {
  std::vector<std::filesystem::path> files;  // figure by figure: png, svg, script, data
  std::string warnings;                      // what gnuplot printed; empty as a rule
};

// Writes NAME.png, NAME.svg, NAME.gp and the data of every figure into `folder` (made when absent). Whoever wants
// another colour or range edits NAME.gp and runs `gnuplot NAME.gp` in that folder. All files are made in a hidden
// folder inside it and renamed when the last figure is drawn: when anything fails, what was there stays as it was.
// Several figures share a gnuplot process, and processes run beside each other. The same figures give the same bytes.
// Throws Error(Fault::runtime), with the figure's name and gnuplot's message, when a figure cannot be drawn.
Drawn draw(std::vector<Figure> figures, const std::filesystem::path& folder, const Theme& theme);

// Whether the folder has the images of all of them.
bool are_drawn(const std::vector<Figure>& figures, const std::filesystem::path& folder);

// Calls draw() at the end of a run that has taken hours. Nothing computed is lost for want of gnuplot: a failure
// becomes a warning; none is said of a folder that is another process's by now.
void draw_or_warn(const std::filesystem::path& run, const std::string& if_interrupted, Console& console,
                  const std::function<void()>& draw, const std::function<bool()>& is_ours);

}  // namespace headscope
