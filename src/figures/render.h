// From a completed figure to its gnuplot script. First the layout: margins from the widths of texts, a legend in as few
// rows as fit, panels, labels that do not overlap. Then the one renderer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "figures/figure.h"
#include "figures/script.h"

namespace headscope {

// In units from the lower left corner.
struct Place {
  double left = 0, bottom = 0, width = 0, height = 0;
  [[nodiscard]] double right() const { return left + width; }
  [[nodiscard]] double top() const { return bottom + height; }
  [[nodiscard]] bool meets(const Place& other) const {
    return left < other.right() && other.left < right() && bottom < other.top() && other.bottom < top();
  }
};

struct PlacedText {
  enum Align { left, centre, right };
  std::string text;
  double x = 0, y = 0;  // y: the middle of the line; upright: x is
  int font = 12;
  Align align = left;
  bool upright = false;
  Colour colour = {};
};

struct LegendEntry {
  Mark mark;  // its sample, 16 units wide, begins at x
  double x = 0, y = 0;
};

// Sizes are in units: fonts are 14 and 12 units high. 480 units are one column: printed 8.5 cm wide, the fonts come out
// as 7 and 6 points, what journals ask for, and the 1600 pixels of the PNG as 478 dots per inch. A figure wider than
// 600 units is meant for the width of a page and has 2 pixels per unit, about 280 dots per inch.
struct Layout {
  int width = 480, height = 150;
  std::vector<Place> panels = {};
  Place bar = {};  // of the colours; without width: none
  std::vector<PlacedText> texts = {};
  std::vector<LegendEntry> legend = {};
  std::size_t columns = 1;
};
Layout lay_out(const Figure& figure);

// Width of a line of DejaVu Sans.
double text_width(std::string_view text, double font);

// Where a value stands between the ends of an axis: 0 to 1 inside.
double position_on(const Axis& axis, double value);

// A script and the tables that it reads, as `draw` writes them: NAME.gp, and NAME.dat or NAME.<data name>.dat when
// there are several.
struct FigureScript {
  std::string name;
  Script script;
  std::span<const FigureData> data;
};

// An internal error when a name is none of ours. The tables stay those of the figure.
FigureScript render(const Figure& figure, const Theme& theme);
Drawn draw(std::span<const FigureScript> figures, const std::filesystem::path& folder);

// Tab-separated with a header line; missing values are NaN. In texts, control characters become spaces and " becomes ';
// a text that begins with # is put in quotes, since gnuplot would skip the row.
std::string to_dat(const Table& table);

Script data_file(std::string_view figure, std::string_view data, std::size_t tables);

}  // namespace headscope
