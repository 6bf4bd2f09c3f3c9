// What a figure shows: tables, marks that read their columns, axes, panels, labels. It holds no gnuplot, no place on
// the page and no colour, only the colours' roles: the renderer (render.cpp) lays a figure out and writes its script.
//   Figure figure{.name = "loss", .title = "Loss", .data = {{"run", table}}};
//   figure.panels.push_back({.x = token_axis(moments), .y = labelled(round_axis(losses), {"nats"})});
//   figure.panels[0].marks = {Mark::line("run", "tokens", "loss").named("training")};
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "figures/axis.h"
#include "figures/theme.h"
#include "formats/table.h"

namespace headscope {

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
  double value = 0;         // on the scale; `readable`: black or white, whichever can be read on that colour
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
  double size = 0;        // of points, also along a line; 0: a line without, or points of medium size
  double opacity = 1;
  Dash dash = Dash::solid;
  PointShape shape = PointShape::circle;
  double shift = 0, shift_to = 0, span = 0.8;  // in units of x
  std::string half = {};                       // column of a cell's half width
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
  // Of width and height 1 around x, y, or the square in it that `half` says; an image has all cells of a grid.
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

// A line across the panel, below the marks: at a height, or the diagonal.
struct Reference {
  double y = 0;
  Dash dash = Dash::dashed;
  Colour colour = {};
  bool diagonal = false;
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
ColourScale ordered_scale(std::int64_t first, std::int64_t last, std::string label);

// Panels in rows. Those of a row share the y axis, those of a column the x axis: numbers stand at the left and at the
// bottom only. Sizes are in units, see render.h; 0 leaves them to the renderer.
struct Grid {
  std::size_t columns = 1;
  double width = 0, height = 0;  // of a panel
  double aspect = 0;             // height over width
  double most_width = 0, most_height = 0;
  bool page = false;  // as wide as a page instead of a column
};
// Up to four panels in one column of a journal, two beside each other; more in two rows over the width of a page.
Grid grid_of(std::size_t panels);

struct Figure {
  std::string name;          // stem of the files: letters, digits and _
  std::string title;         // what it shows
  std::string subject = {};  // whose; may be empty
  std::vector<FigureData> data = {};
  std::vector<Panel> panels = {};       // none: the figure says its first note only
  std::vector<Mark> kinds = {};         // a second part of the legend: marks without data
  std::vector<std::string> notes = {};  // lines below the legend
  std::optional<ColourScale> colours = {};
  Grid grid = {};
};

// A figure that says that there is nothing to show, so that a folder of figures is complete in every case.
Figure empty_figure(std::string name, std::string title, std::string subject, std::string why = "no values");

// The finite values of a column.
std::size_t finite_count(const Numbers& values);

// Curves of layers, one column each: a table of x and L0, L1, ..., and its marks, coloured by layer. Points come in
// order of layer; a layer without a point at some x has a missing value there. Throws Error(Fault::input) when there
// are too many.
struct CurvePoint {
  std::int64_t layer = 0, x = 0;
  double y = 0;
};
struct LayerCurves {
  Table table;
  std::vector<Mark> marks;
  std::int64_t first = 0, last = 0;  // layers
};
LayerCurves layer_curves(const std::vector<CurvePoint>& points, const std::string& data, const std::string& x);

struct Drawn {
  std::vector<std::filesystem::path> files;  // figure by figure: png, svg, script, data
  std::string warnings;                      // what gnuplot printed; empty as a rule
};

// Writes NAME.png, NAME.svg, NAME.gp and the data of every figure into `folder` (made when absent). Whoever wants
// another colour or range edits NAME.gp and runs `gnuplot NAME.gp` in that folder. All files are made in a hidden
// folder inside it and renamed when the last figure is drawn: when anything fails, what was there stays as it was.
// Several figures share a gnuplot process, and processes run beside each other. The same figures give the same bytes.
// Throws Error(Fault::runtime), with the figure's name and gnuplot's message, when a figure cannot be drawn.
Drawn draw(std::span<const Figure> figures, const std::filesystem::path& folder, const Theme& theme);

}  // namespace headscope
