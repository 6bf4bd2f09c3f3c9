#include "figures/figure_parts.h"

namespace headscope {
namespace {

bool has_two_lines(const Script& label) {
  return label.text().find("\\n") != std::string::npos;
}

}  // namespace

std::string head_name(std::int64_t layer, std::int64_t q_head) {
  return fmt::format("L{}H{}", layer, q_head);
}

Script frame_commands(const Figure& figure, const Margins& around, std::string_view what, std::string_view whose) {
  const double character = 8.1;  // mean width of a character of DejaVu Sans at 14 units
  const auto room = static_cast<std::size_t>((figure.width - around.left - 8) / character);
  std::string title(what);
  if (!whose.empty()) {
    const std::size_t used = what.size() + 2;
    title = fmt::format("{}, {}", what, shorten(whose, room > used + 8 ? room - used : 8));
  }
  return margins(figure, around.left, around.right, around.top, around.bottom) +
         format_script("set label 1 {} at screen {:.4f},{:.4f} left textcolor rgb ink font ',14'\n",
                       gnuplot_text(title), around.left / figure.width, 1 - 14.0 / figure.height);
}

Script axis_labels(const Figure& figure, const Script& x, const Script& y) {
  const bool two_lines = has_two_lines(y);
  return format_script(
      "set label 2 {} at graph 0.5,screen {:.4f} center textcolor rgb ink font ',14'\n"
      "set label 3 {} at screen {:.4f},graph 0.5 center rotate by 90 textcolor rgb ink font ',{}'\n",
      x, 11.0 / figure.height, y, (two_lines ? 8.0 : 10.0) / figure.width, two_lines ? 12 : 14);
}

Script legend_above(const Figure& figure, const Margins& around) {
  return format_script("set key at screen {:.4f},{:.4f} left center horizontal Left reverse width -1\n",
                       (around.left - 4) / figure.width, 1 - 34.0 / figure.height);
}

Script legend_in_rows(const Figure& figure, const Margins& around, int rows, int space) {
  return legend_above(figure, around) + format_script("set key at screen {:.4f},{:.4f} vertical maxrows {} width {}\n",
                                                      (around.left - 4) / figure.width,
                                                      1 - (27.0 + 7 * rows) / figure.height, rows, space);
}

std::vector<Script> keys_in_two_rows(std::span<const Script> above, std::span<const Script> below) {
  std::vector<Script> keys;
  const Script blank = "keyentry with lines lc rgb paper title ' '";
  for (std::size_t i = 0; i < std::max(above.size(), below.size()); ++i) {
    keys.push_back(i < above.size() ? above[i] : blank);
    if (i < below.size())
      keys.push_back(below[i]);
    else if (i + 1 < above.size())
      keys.push_back(blank);
  }
  return keys;
}

double left_margin(const Axis& axis) {
  std::size_t longest = 0;
  for (double tic = axis.first_tic; tic < axis.last_tic + axis.step / 2; tic += axis.step) {
    const double number = std::fabs(tic) < axis.step / 1e6 ? 0 : tic;
    longest = std::max(longest, fmt::format("{:g}", number).size());
  }
  return std::max(50.0, 34 + 7.6 * static_cast<double>(longest));
}

Script legend_below(const Figure& figure, const Margins& around) {
  return format_script("set key at screen {:.4f},{:.4f} right center horizontal Left reverse\n",
                       1 - (around.right - 4) / figure.width, 11.0 / figure.height);
}

Script colour_bar(const Figure& figure, const Margins& around, const Axis& axis, const Script& label,
                  const std::vector<std::string>& colours) {
  const bool two_lines = has_two_lines(label);
  const double x = 1 - (around.right - 8) / figure.width;
  const double height = 1 - (around.top + around.bottom) / figure.height;
  return palette_command(colours) + axis_commands("cb", axis) +
         format_script(
             "set colorbox user origin screen {:.4f},{:.4f} size screen {:.4f},{:.4f} noborder\n"
             "set label 4 {} at screen {:.4f},graph 0.5 center rotate by 90 textcolor rgb ink font ',12'\n",
             x, around.bottom / figure.height, 9.0 / figure.width, height, label,
             1 - (two_lines ? 26.0 : 10.0) / figure.width);
}

double layer_bar_width(std::int64_t first, std::int64_t last) {
  return first == last ? 12 : 62;
}

Script ordered_colours(const Figure& figure, const Margins& around, std::int64_t first, std::int64_t last,
                       const Script& label, const Theme& theme) {
  const Axis axis = integer_axis(first, last, 12);
  if (first == last) return palette_command(theme.ordered) + axis_commands("cb", axis) + "unset colorbox\n";
  if (last - first >= 12) return colour_bar(figure, around, axis, label, theme.ordered);
  std::vector<std::string> steps;  // few: a bar of as many colours, each named
  for (std::int64_t i = first; i <= last; ++i)
    steps.push_back(colour_at(theme.ordered, static_cast<double>(i - first) / static_cast<double>(last - first)));
  return colour_bar(figure, around, axis, label, steps) + format_script("set palette maxcolors {}\n", steps.size());
}

Script layer_colours(const Figure& figure, const Margins& around, std::int64_t first, std::int64_t last,
                     const Theme& theme) {
  return ordered_colours(figure, around, first, last, "'layer'", theme);
}

Script value_tiles(const Script& data) {
  return format_script(
      "{} using \"x\":\"y\":(0.5):(0.5):\"value\" with boxxyerror lc palette lw 0.5 fs solid border rgb paper notitle",
      data);
}

Script absent_tiles(const Script& data, const Script& legend) {
  return format_script(
      "{0} using \"x\":\"y\":(0.5):(0.5) with boxxyerror fc rgb absent lw 0.5 fs solid border rgb paper title {1}, "
      "\\\n"
      "     {0} using (column(\"x\")-0.4):(column(\"y\")-0.4):(0.8):(0.8) with vectors nohead lc rgb muted lw 0.5 "
      "notitle",
      data, legend);
}

Script plot_command(std::vector<Script> clauses) {
  std::erase_if(clauses, [](const Script& clause) { return clause.empty(); });
  if (clauses.empty()) return "\n";
  return "plot " + join(clauses, ", \\\n     ") + "\n";
}

Figure empty_figure(const std::string& name, std::string_view what, std::string_view whose, std::string_view why) {
  Figure figure{.name = name, .height = 150};
  figure.setup = frame_commands(figure, {}, what, whose) +
                 "unset border; unset tics; unset grid; unset key\nset xrange [0:1]; set yrange [0:1]\n" +
                 format_script("set label 5 {} at graph 0.5,0.5 center textcolor rgb muted\n", gnuplot_text(why));
  figure.plot = "plot NaN notitle\n";
  return figure;
}

}  // namespace headscope
