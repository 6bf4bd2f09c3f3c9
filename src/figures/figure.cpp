#include "figures/figure.h"

#include "core/error.h"

namespace headscope {
namespace {

// Variables that scripts set, and words that gnuplot reads as something else where a plot begins.
constexpr std::string_view taken_names =
    " paper ink muted faint absent accent accent2 early middle final faded layer i k layer_list quartile format "
    " for sample newhistogram newspiderplot keyentry x y z t u v r pi NaN I ";

void check_names(const Figure& figure) {
  static_cast<void>(gnuplot_name(figure.name));
  for (const FigureData& data : figure.data) {
    const std::string name = gnuplot_name(data.name).text();
    const auto same = [&](const FigureData& other) { return other.name == name; };
    HEADSCOPE_CHECK(std::isalpha(static_cast<unsigned char>(name[0])) &&
                        taken_names.find(' ' + name + ' ') == std::string_view::npos &&
                        std::ranges::count_if(figure.data, same) == 1,
                    "figure {}: data name = '{}'", figure.name, name);
  }
}

double pixels_per_unit(const Figure& figure) {
  return figure.width <= 600 ? 10.0 / 3 : 2.0;
}

std::string plain_cell(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    if (c == '"') c = '\'';
  }
  const std::size_t first = text.find_first_not_of(' ');
  return first != std::string::npos && text[first] == '#' ? '"' + text + '"' : text;
}

std::string cell_text(const Column& column, std::size_t row) {
  if (const auto* integers = std::get_if<Integers>(&column.values)) return fmt::format("{}", (*integers)[row]);
  if (const auto* numbers = std::get_if<Numbers>(&column.values))
    return std::isnan((*numbers)[row]) ? "NaN" : fmt::format("{}", (*numbers)[row]);
  return plain_cell(std::get<Texts>(column.values)[row]);
}

}  // namespace

Script data_file(const Figure& figure, const FigureData& data) {
  const Script name = gnuplot_name(figure.name);
  return figure.data.size() == 1 ? name + ".dat" : format_script("{}.{}.dat", name, gnuplot_name(data.name));
}

std::string to_dat(const Table& table) {
  HEADSCOPE_CHECK(!table.columns().empty(), "a table without columns");
  std::string text;
  for (const Column& column : table.columns()) text.append(gnuplot_name(column.name).text()).push_back('\t');
  text.back() = '\n';
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const Column& column : table.columns()) text.append(cell_text(column, row)).push_back('\t');
    text.back() = '\n';
  }
  return text;
}

Script margins(const Figure& figure, double left, double right, double top, double bottom) {
  const double width = figure.width;
  const double height = figure.height;
  return format_script(
      "set lmargin at screen {:.4f}; set rmargin at screen {:.4f}; set tmargin at screen {:.4f}; "
      "set bmargin at screen {:.4f}\n",
      left / width, 1 - right / width, 1 - top / height, bottom / height);
}

std::string script_of(const Figure& figure, const Theme& theme) {
  check_names(figure);
  const Script name = gnuplot_name(figure.name);
  Script text =
      format_script("# Edit and draw again, in this folder: gnuplot {}.gp\nreset session\nset encoding utf8\n", name);
  text += "set datafile separator tab\nset datafile columnheaders\nset datafile missing 'NaN'\n";
  for (const FigureData& data : figure.data)
    text += format_script("{} = '{}'\n", gnuplot_name(data.name), data_file(figure, data));
  text += format_script("\n{}\n{}\n", style_commands(theme), figure.setup);
  const double scale = pixels_per_unit(figure);
  const auto pixels = [&](int units) { return static_cast<int>(std::lround(units * scale)); };
  // pngcairo takes font sizes in points at 96 dots per inch, svg in units: 3/4 makes them equal. Its points are
  // smaller, too.
  text += format_script(
      "do for [format in 'png svg'] {{\n"
      "if (format eq 'png') {{\n"
      "set terminal pngcairo enhanced size {0},{1} font 'DejaVu Sans,14' fontscale {2:.4g} linewidth {3:.4g} "
      "pointscale {4:.4g} rounded background {5}\n"
      "}} else {{\n"
      "set terminal svg enhanced size {6},{7} fixed name '{8}' font 'DejaVu Sans,14' rounded background {5}\n"
      "}}\n"
      "set output '{8}.'.format\n",
      pixels(figure.width), pixels(figure.height), scale * 0.75, scale, scale * 1.33, gnuplot_text(theme.paper),
      figure.width, figure.height, name);
  text += figure.plot;
  text += "}\nunset output\n";
  return text.text();
}

}  // namespace headscope
