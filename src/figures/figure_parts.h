// Pieces that several figures share: titles, colour bars, tiles of cells without a value.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "figures/axis.h"
#include "figures/figure.h"

namespace headscope {

// What an axis or colour bar of plasticity says, as a gnuplot string.
constexpr char plasticity_label[] = "\"plasticity\\n(0 fixed, 1 coin flip)\"";

// Space around the plot, in the figure's units.
struct Margins {
  double left = 50;
  double right = 12;
  double top = 30;  // 48 with a legend
  double bottom = 48;
};

// "L3H5".
std::string head_name(std::int64_t layer, std::int64_t q_head);

// Margins and, at the left end of the plot, the title: "what, whose"; shortened when it would not fit.
Script frame_commands(const Figure& figure, const Margins& around, std::string_view what, std::string_view whose);

// The labels of the axes, at the lower and left edge: gnuplot's own move with the width of the numbers and differ
// between formats. Gnuplot strings; y of one line or two.
Script axis_labels(const Figure& figure, const Script& x, const Script& y);

// The legend in one row between title and plot: never over data.
Script legend_above(const Figure& figure, const Margins& around);

// The same in `rows` rows, filled column by column, as wide as it gets: gnuplot would break it at the plot's width.
// `space` in characters is added to each column: short names need some.
Script legend_in_rows(const Figure& figure, const Margins& around, int rows, int space = -1);

// Legend entries for two rows: gnuplot fills columns first.
std::vector<Script> keys_in_two_rows(std::span<const Script> above, std::span<const Script> below);

// The left margin for a label of one line and the numbers of this axis.
double left_margin(const Axis& axis);

// The legend at the right end of the line of the x axis's label, for the tiles without a value.
Script legend_below(const Figure& figure, const Margins& around);

// A colour bar right of the plot; `around.right` is at least 94 with a label of two lines and 62 with one. The label is
// a gnuplot string.
Script colour_bar(const Figure& figure, const Margins& around, const Axis& axis, const Script& label,
                  const std::vector<std::string>& colours);

// Curves and points coloured by an integer such as the layer, with the bar that says so; without the bar when there is
// one.
Script ordered_colours(const Figure& figure, const Margins& around, std::int64_t first, std::int64_t last,
                       const Script& label, const Theme& theme);
Script layer_colours(const Figure& figure, const Margins& around, std::int64_t first, std::int64_t last,
                     const Theme& theme);
double layer_bar_width(std::int64_t first, std::int64_t last);  // right margin that it needs

// Plot clauses for tiles of width and height 1 at columns "x", "y": coloured by column "value", or grey with a stroke
// through; the legend is a gnuplot string.
Script value_tiles(const Script& data);
Script absent_tiles(const Script& data, const Script& legend);

// "plot a, b, c"; empty clauses are left out.
Script plot_command(std::vector<Script> clauses);

// A figure that says that there is nothing to show, so that a folder of figures is complete in every case.
Figure empty_figure(const std::string& name, std::string_view what, std::string_view whose,
                    std::string_view why = "no values");

}  // namespace headscope
