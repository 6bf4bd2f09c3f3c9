#include "figures/panels.h"

namespace headscope {
namespace {

int in_thirds(double units) {  // 10 / 3 pixels to a unit: whole pixels
  return static_cast<int>(std::lround(units / 3)) * 3;
}

Script panel_margins(const Figure& figure, const PanelGrid& grid, std::size_t panel) {
  const auto column = static_cast<double>(panel % grid.columns), row = static_cast<double>(panel / grid.columns);
  const double left = grid.around.left + column * (grid.width + grid.gap_x);
  const double top = grid.around.top + row * (grid.height + grid.gap_y);
  return margins(figure, left, figure.width - left - grid.width, top, figure.height - top - grid.height);
}

}  // namespace

PanelGrid grid_of(std::size_t count, const Margins& around) {
  PanelGrid grid{.count = count, .around = around};
  const double column = 480 - around.left - around.right;
  if (count == 1) {
    grid.width = column;
    grid.height = 220;
  } else {
    grid.columns = count <= 4 ? 2 : (count + 1) / 2;
    grid.width = count <= 4 ? (column - grid.gap_x) / 2 : 192;
    grid.height = 140;
  }
  return grid;
}

PanelGrid stacked_grid(std::size_t count, const Margins& around) {
  PanelGrid grid{.count = count,
                 .width = 480 - around.left - around.right,
                 .height = count == 1   ? 216.0
                           : count == 2 ? 150.0
                                        : 110.0,
                 .gap_y = 28,
                 .around = around};
  if (count > 1) grid.around.top += 18;
  return grid;
}

Figure panel_figure(const std::string& name, const PanelGrid& grid) {
  const auto columns = static_cast<double>(grid.columns), rows = static_cast<double>(grid.rows());
  return {.name = name,
          .width = in_thirds(grid.around.left + columns * (grid.width + grid.gap_x) - grid.gap_x + grid.around.right),
          .height = in_thirds(grid.around.top + rows * (grid.height + grid.gap_y) - grid.gap_y + grid.around.bottom)};
}

Script shared_labels(const Figure& figure, const PanelGrid& grid, const Script& x, const Script& y) {
  const double middle_x = (grid.around.left + figure.width - grid.around.right) / 2 / figure.width;
  const double middle_y = (grid.around.bottom + figure.height - grid.around.top) / 2 / figure.height;
  return format_script(
      "set label 2 {} at screen {:.4f},{:.4f} center textcolor rgb ink font ',14'\n"
      "set label 3 {} at screen {:.4f},{:.4f} center rotate by 90 textcolor rgb ink font ',14'\n",
      x, middle_x, 11.0 / figure.height, y, 10.0 / figure.width, middle_y);
}

Script panel_plots(const Figure& figure, const PanelGrid& grid, const Script& frame,
                   const std::vector<PanelPlot>& panels) {
  Script text = frame + "set multiplot\n";
  for (std::size_t i = 0; i < panels.size(); ++i) {
    text += panel_margins(figure, grid, i);
    text += panels[i].title.empty()
                ? Script("unset label 5\n")
                : format_script("set label 5 {} at graph 0,1 left offset 0,0.6 textcolor rgb ink font ',12'\n",
                                gnuplot_text(panels[i].title));
    text += panels[i].commands + panels[i].plot;
    if (i == 0 && panels.size() > 1)
      text += "unset label 1; unset label 2; unset label 3; unset label 4; unset key; unset colorbox\n";
  }
  return text + "unset multiplot\n";
}

Script ReferenceLine::command() const {
  if (!std::isfinite(value)) return "unset label 6\n";
  return format_script(
      "set label 6 {} at graph 1,first {:.10g} left offset character 0.4,0 textcolor rgb ink font ',12'\n", text,
      value);
}

Script ReferenceLine::clause() const {
  return std::isfinite(value) ? format_script("{:.10g} with lines lc rgb ink lw 0.7 dt (6,6) notitle", value)
                              : Script();
}

Script number_format(const Script& axis, bool numbers) {
  return format_script("set format {} '{}'\n", axis, numbers ? Script("%g") : Script());
}

std::vector<std::size_t> evenly_spaced(std::size_t count, std::size_t most) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::min(count, most); ++i)
    chosen.push_back(count <= most ? i : i * (count - 1) / (most - 1));
  return chosen;
}

}  // namespace headscope
