// Small multiples: panels of one size in rows that make one figure.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/missing.h"
#include "figures/figure.h"
#include "figures/figure_parts.h"

namespace headscope {

struct PanelGrid {
  std::size_t count = 1;
  std::size_t columns = 1;
  double width = 400;  // of a panel, in the figure's units
  double height = 200;
  double gap_x = 28;  // numbers of neighbours meet here
  double gap_y = 24;  // room for a panel's title
  Margins around = {};

  [[nodiscard]] std::size_t rows() const { return (count + columns - 1) / columns; }
  // Numbers stand only at the left and where no panel is below.
  [[nodiscard]] bool at_left(std::size_t panel) const { return panel % columns == 0; }
  [[nodiscard]] bool at_bottom(std::size_t panel) const { return panel + columns >= count; }
};

// Up to four panels in one column of a journal, two beside each other; more in two rows over the width of a page.
PanelGrid grid_of(std::size_t count, const Margins& around);

// One below the other in one column of a journal. Several have titles: `around.top` grows by their height.
PanelGrid stacked_grid(std::size_t count, const Margins& around);

// Width and height for this grid.
Figure panel_figure(const std::string& name, const PanelGrid& grid);

// The labels of the axes that all panels share. Gnuplot strings.
Script shared_labels(const Figure& figure, const PanelGrid& grid, const Script& x, const Script& y);

struct PanelPlot {
  std::string title;  // above the panel; may be empty
  Script commands;    // ranges, labels 5 and above
  Script plot;
};

// The figure's plot. `frame` has what is drawn once: labels 1 to 4, the legend, the colour bar.
Script panel_plots(const Figure& figure, const PanelGrid& grid, const Script& frame,
                   const std::vector<PanelPlot>& panels);

// A dashed line across a panel, named at its right end. Not drawn without a value.
struct ReferenceLine {
  double value = missing;
  Script text = {};  // a gnuplot string

  [[nodiscard]] double margin() const { return std::isfinite(value) ? 36 : 16; }  // right of the panel
  [[nodiscard]] Script command() const;                                           // label 6
  [[nodiscard]] Script clause() const;                                            // of the plot
};

// "set format y '%g'" for axis "x" or "y", or the same without numbers: for a panel that has a neighbour there.
Script number_format(const Script& axis, bool numbers);

// At most `most` (two or more) of 0 ... count - 1, evenly spaced, the first and the last among them.
std::vector<std::size_t> evenly_spaced(std::size_t count, std::size_t most);

}  // namespace headscope
