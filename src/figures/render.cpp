#include "figures/render.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/error.h"

namespace headscope {
namespace {

// Variables that scripts set, and words that gnuplot reads as something else where a plot begins.
constexpr std::string_view taken_names =
    " paper ink muted faint absent early middle final faded format for sample newhistogram newspiderplot keyentry x y "
    "z "
    " t u v r pi NaN I category1 category2 category3 category4 category5 category6 category7 category8 ";

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

Script dash_of(Dash dash) {
  return dash == Dash::solid ? Script() : dash == Dash::dashed ? Script(" dt (12,9)") : Script(" dt (3,7)");
}

Script point_of(const Mark& mark) {
  const int types[] = {7, 9, 5};
  return format_script("pt {} ps {:.4g}", types[static_cast<std::size_t>(mark.shape)], mark.size > 0 ? mark.size : 0.5);
}

// "\"x\"" or "(column(\"x\")+0.25)"
Script shifted(const std::string& column, double shift) {
  return shift == 0 ? format_script("\"{}\"", gnuplot_name(column))
                    : format_script("(column(\"{}\"){:+.6g})", gnuplot_name(column), shift);
}

Script margins(const Layout& layout, const Place& place) {
  const double width = layout.width, height = layout.height;
  return format_script(
      "set lmargin at screen {:.5f}; set rmargin at screen {:.5f}; set tmargin at screen {:.5f}; set bmargin at screen "
      "{:.5f}\n",
      place.left / width, place.right() / width, place.top() / height, place.bottom / height);
}

Script tics_of(const Axis& axis, bool numbers) {
  std::vector<Script> tics;
  for (const Tic& tic : axis.tics)
    tics.push_back(format_script("{} {:.17g}", gnuplot_text(numbers ? tic.text : ""), tic.at));
  return join(tics, ", ");
}

Script range_of(const Axis& axis) {
  return axis.reversed ? format_script("[{:.10g}:{:.10g}]", axis.high, axis.low)
                       : format_script("[{:.10g}:{:.10g}]", axis.low, axis.high);
}

// The colour at a share of the way from the first to the last: they go over into each other.
std::string between(const std::vector<std::string>& colours, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(colours.size() - 1);
  const auto first = static_cast<std::size_t>(place), second = std::min(first + 1, colours.size() - 1);
  std::string colour = "#";
  for (const std::size_t at : {1, 3, 5}) {
    const auto part = [&](std::size_t i) { return std::stoi(colours[i].substr(at, 2), nullptr, 16); };
    const double along = place - static_cast<double>(first);
    colour += fmt::format("{:02x}", std::lround(part(first) + along * (part(second) - part(first))));
  }
  return colour;
}

class Renderer {
 public:
  Renderer(const Figure& figure, const Theme& theme) : figure_(figure), theme_(theme), layout_(lay_out(figure)) {}

  [[nodiscard]] Script script() const {
    const Script name = gnuplot_name(figure_.name);
    Script text =
        format_script("# Edit and draw again, in this folder: gnuplot {}.gp\nreset session\nset encoding utf8\n", name);
    text += "set datafile separator tab\nset datafile columnheaders\nset datafile missing 'NaN'\n";
    for (const FigureData& data : figure_.data)
      text += format_script("{} = '{}'\n", gnuplot_name(data.name),
                            data_file(figure_.name, data.name, figure_.data.size()));
    text += "\n" + style_commands(theme_) + colour_scale() + "unset key\nset style fill solid noborder\n\n";
    text += terminals(name) + "set multiplot\nunset colorbox\n";
    for (std::size_t i = 0; i < figure_.panels.size(); ++i) text += panel(i);
    return text + frame() + "unset multiplot\n}\nunset output\n";
  }

 private:
  // pngcairo takes font sizes in points at 96 dots per inch, svg in units: 3/4 makes them equal. Its points are
  // smaller, too.
  [[nodiscard]] Script terminals(const Script& name) const {
    const double scale = layout_.width <= 600 ? 10.0 / 3 : 2.0;
    const auto pixels = [&](int units) { return static_cast<int>(std::lround(units * scale)); };
    return format_script(
        "do for [format in 'png svg'] {{\n"
        "if (format eq 'png') {{\n"
        "set terminal pngcairo enhanced size {0},{1} font 'DejaVu Sans,14' fontscale {2:.4g} linewidth {3:.4g} "
        "pointscale {4:.4g} rounded background paper\n"
        "}} else {{\n"
        "set terminal svg enhanced size {5},{6} fixed name '{7}' font 'DejaVu Sans,14' rounded background paper\n"
        "}}\n"
        "set output '{7}.'.format\n",
        pixels(layout_.width), pixels(layout_.height), scale * 0.75, scale, scale * 1.33, layout_.width, layout_.height,
        name);
  }

  // Few integers have a colour each; else colours go over into each other. Those of differences are as strong below
  // the middle as above it, however far the axis goes on either side.
  [[nodiscard]] Script colour_scale() const {
    if (!figure_.colours) return {};
    const std::vector<std::string>* lists[] = {&theme_.sequential, &theme_.ordered, &theme_.diverging};
    const std::vector<std::string>& colours = *lists[figure_.colours->colours];
    const Axis& axis = figure_.colours->axis;
    const auto most = colours.size(), integers = static_cast<std::size_t>(std::min(axis.high - axis.low, 1e6));
    const bool stepped = figure_.colours->colours == ColourScale::ordered && integers > 1 && integers <= most;
    const bool diverging = figure_.colours->colours == ColourScale::diverging;
    const std::size_t steps = stepped ? integers : 0, shown = stepped ? integers : diverging ? 21 : most;
    const double farthest = std::max(axis.middle - axis.low, axis.high - axis.middle);
    std::vector<Script> places;
    for (std::size_t i = 0; i < shown; ++i) {
      double share = static_cast<double>(i) / static_cast<double>(shown - 1);
      if (diverging) share = 0.5 + (axis.low + share * (axis.high - axis.low) - axis.middle) / farthest / 2;
      places.push_back(format_script("{} {}", i, gnuplot_text(between(colours, share))));
    }
    return format_script("set palette maxcolors {} defined ({})\nset cbrange {}\n", steps, join(places, ", "),
                         range_of(axis));
  }

  // The name of a variable, or a text.
  [[nodiscard]] Script name_of_colour(const Colour& colour) const {
    const Script depths[] = {"early", "middle", "final"};
    if (colour.role == Colour::muted) return "muted";
    if (colour.role == Colour::absent) return "absent";
    if (colour.role == Colour::category)
      return format_script("category{}", colour.index % theme_.categories.size() + 1);
    if (colour.role == Colour::depth) return depths[std::min<std::size_t>(colour.index, 2)];
    if (colour.role != Colour::readable) return "ink";
    return position_on(figure_.colours->axis, colour.value) < 0.44 ? Script("'#ffffff'") : Script("'#000000'");
  }

  // " lc rgb early"; `opacity` is that of lines and points, areas have it in their fill.
  [[nodiscard]] Script colour_of(const Colour& colour, double opacity = 1) const {
    if (colour.role == Colour::scale)
      return colour.column.empty() ? format_script(" lc palette cb {:.10g}", colour.value) : Script(" lc palette");
    if (opacity == 1) return " lc rgb " + name_of_colour(colour);
    return format_script(" lc rgb faded({}, {})", name_of_colour(colour), std::lround((1 - opacity) * 255));
  }

  [[nodiscard]] Script fill_of(const Mark& mark) const {
    return mark.opacity == 1 ? Script(" fs solid") : format_script(" fs transparent solid {:.4g}", mark.opacity);
  }

  [[nodiscard]] bool is_single(const Mark& mark) const {
    const Numbers values = data_of(figure_, mark).numbers(mark.kind == Mark::Kind::band ? mark.low : mark.y);
    return std::ranges::count_if(values, [](double value) { return std::isfinite(value); }) == 1;
  }

  [[nodiscard]] Script source_of(const Mark& mark) const {
    const Script name = gnuplot_name(mark.data);
    return mark.rows ? format_script("{} every ::{}::{}", name, mark.rows->first, mark.rows->second) : name;
  }

  void add_clauses(const Mark& mark, const Panel& panel, std::vector<Script>& clauses) const {
    const Script from = source_of(mark) + " using " + shifted(mark.x, mark.shift);
    const auto column = [](const std::string& name) { return format_script(":\"{}\"", gnuplot_name(name)); };
    const Script value = mark.colour.column.empty() ? Script() : column(mark.colour.column);
    const Script faded = colour_of(mark.colour, mark.opacity), full = colour_of(mark.colour);
    const auto box = [&](double half) {
      const Script low = mark.low.empty() ? Script(":(0)") : column(mark.low);
      return format_script("{}{}:{}:{}{}{} with boxxyerror{}{} noborder", from, column(mark.high),
                           shifted(mark.x, mark.shift - half), shifted(mark.x, mark.shift + half), low,
                           column(mark.high), full, fill_of(mark));
    };
    if (mark.kind == Mark::Kind::cell) return add_cells(mark, from + column(mark.y), value, clauses);
    Script drawn;
    if (mark.kind == Mark::Kind::image) {
      drawn = from + column(mark.y) + value + " with image";
    } else if (mark.kind == Mark::Kind::points || (mark.kind == Mark::Kind::line && is_single(mark))) {
      drawn = from + column(mark.y) + value + " with points " + point_of(mark) + faded;
    } else if (mark.kind == Mark::Kind::line) {
      drawn = format_script("{}{} with {} lw {:.4g}{}{}", from, column(mark.y),
                            mark.size > 0 ? "linespoints " + point_of(mark) : Script("lines"), mark.width, faded,
                            dash_of(mark.dash));
    } else if (mark.kind == Mark::Kind::box) {
      drawn = box(mark.span / 2);
    } else if (mark.kind == Mark::Kind::band) {
      drawn = is_single(mark) ? box((panel.x.high - panel.x.low) / 8)
                              : from + column(mark.low) + column(mark.high) + " with filledcurves" + full +
                                    fill_of(mark) + " noborder";
    } else {
      const Script line =
          format_script("{}{}:({:.6g}):(column(\"{}\")-column(\"{}\")) with vectors nohead", from, column(mark.low),
                        mark.shift_to - mark.shift, gnuplot_name(mark.high), gnuplot_name(mark.low));
      if (mark.rim) clauses.push_back(line + format_script(" lc rgb paper lw {:.4g}", mark.width + 1));
      drawn = line + format_script(" lw {:.4g}{}{}", mark.width, faded, dash_of(mark.dash));
    }
    clauses.push_back(drawn);
  }

  void add_cells(const Mark& mark, const Script& from, const Script& value, std::vector<Script>& clauses) const {
    Script halves = ":(0.5):(0.5)", border = " lw 0.5" + fill_of(mark) + " border rgb paper";
    if (!mark.half.empty()) {
      halves = format_script(":\"{0}\":\"{0}\"", gnuplot_name(mark.half));
      border = fill_of(mark) + " noborder";
    }
    clauses.push_back(from + halves + value + " with boxxyerror" + colour_of(mark.colour) + border);
    if (mark.struck)
      clauses.push_back(format_script("{} using {}:{}:(0.8):(0.8) with vectors nohead lc rgb muted lw 0.5",
                                      source_of(mark), shifted(mark.x, -0.4), shifted(mark.y, -0.4)));
  }

  // Axes of cells have neither lines nor a frame.
  [[nodiscard]] Script axes(std::size_t index, bool plain) const {
    const Panel& panel = figure_.panels[index];
    const bool at_left = index % layout_.columns == 0, at_bottom = index + layout_.columns >= figure_.panels.size();
    Script text = plain ? Script("set border 0 lw 0.01 lc rgb paper; unset grid\n")
                        : Script("set border 3 lw 0.6 lc rgb ink; unset grid\n");
    for (const bool is_x : {true, false}) {
      const Axis& axis = is_x ? panel.x : panel.y;
      const Script name = is_x ? Script("x") : Script("y");
      text += format_script("set {0}range {1}; {2} {0}\n", name, range_of(axis),
                            axis.log ? Script("set logscale") : Script("unset logscale"));
      if (axis.tics.empty()) {
        text += format_script("unset {}tics\n", name);
        continue;
      }
      text += format_script("set {}tics nomirror out scale {}{}{} textcolor rgb ink font ',12' ({})\n", name,
                            plain ? 0.0 : 0.4,
                            axis.upright ? Script(" rotate by 90 right") : Script(" norotate autojustify"),
                            is_x && !axis.upright ? Script(" offset 0,0.2") : Script(" offset 0,0"),
                            tics_of(axis, is_x ? at_bottom : at_left));
      if (axis.grid && !plain) text += format_script("set grid {}tics back lt -1 lw 0.5 lc rgb faint\n", name);
    }
    return text;
  }

  [[nodiscard]] Script panel(std::size_t index) const {
    const Panel& panel = figure_.panels[index];
    const bool plain = std::ranges::any_of(panel.marks, [](const Mark& mark) { return mark.kind == Mark::Kind::cell; });
    Script text = "\n" + margins(layout_, layout_.panels[index]) + axes(index, plain);
    for (const Reference& line : panel.references) {
      const Script ends = line.diagonal ? Script("graph 0,graph 0 to graph 1,graph 1")
                                        : format_script("graph 0,first {0:.10g} to graph 1,first {0:.10g}", line.y);
      text +=
          format_script("set arrow from {} nohead back lw 0.8{}{}\n", ends, colour_of(line.colour), dash_of(line.dash));
    }
    std::vector<Script> clauses;
    for (const Mark& mark : panel.marks) add_clauses(mark, panel, clauses);
    if (clauses.empty()) clauses.emplace_back("NaN");
    return text + "plot " + join(clauses, ", \\\n     ") + "\nunset arrow\n";
  }

  // All texts, the legend and the colour bar, in a plot of their own over the whole page, whose coordinates are units.
  [[nodiscard]] Script frame() const {
    const double width = layout_.width, height = layout_.height;
    Script text =
        "\n" + margins(layout_, {0, 0, width, height}) +
        format_script(
            "set border 0 lw 0.01 lc rgb paper; unset tics; unset grid; unset logscale\nset xrange [0:{}]; set yrange "
            "[0:{}]\n",
            layout_.width, layout_.height);
    for (const LegendEntry& entry : layout_.legend) text += sample(entry);
    const Script aligned[] = {"left", "center", "right"};
    for (const PlacedText& one : layout_.texts)
      if (!one.text.empty())
        text += format_script("set label {} at {:.2f},{:.2f} {}{} textcolor rgb {} font ',{}'\n",
                              gnuplot_text(one.text), one.x, one.y, aligned[one.align],
                              one.upright ? Script(" rotate by 90") : Script(), name_of_colour(one.colour), one.font);
    const Place& bar = layout_.bar;
    if (bar.width > 0)
      text += format_script(
          "set colorbox user origin screen {:.5f},{:.5f} size screen {:.5f},{:.5f} noborder\n"
          "set cbtics scale 0 textcolor rgb ink font ',12' offset -0.4,0 ({})\n",
          bar.left / width, bar.bottom / height, bar.width / width, bar.height / height,
          tics_of(figure_.colours->axis, true));
    return text + (bar.width > 0 ? Script("plot NaN with lines lc palette cb 0\n") : Script("plot NaN\n")) +
           "unset label; unset object; unset arrow\n";
  }

  // A short line, which stands upright where it is an interval, a point or a box.
  [[nodiscard]] Script sample(const LegendEntry& entry) const {
    const Mark& mark = entry.mark;
    const Script colour = colour_of(mark.colour, mark.opacity);
    const bool is_line = mark.kind == Mark::Kind::line || mark.kind == Mark::Kind::segment;
    Script text;
    const double half_x = mark.low == mark.high ? 8 : 0, half_y = mark.low == mark.high ? 0 : 5;
    if (is_line)
      text += format_script("set arrow from {:.2f},{:.2f} to {:.2f},{:.2f} nohead lw {:.4g}{}{}\n",
                            entry.x + 8 - half_x, entry.y - half_y, entry.x + 8 + half_x, entry.y + half_y,
                            std::max(mark.width, 0.6), colour, dash_of(mark.dash));
    if (mark.kind == Mark::Kind::points || (is_line && mark.size > 0))
      text += format_script("set label '' at {:.2f},{:.2f} point {}{}\n", entry.x + 8, entry.y,
                            point_of(mark.sized(std::max(mark.size, 0.5))), colour);  // small ones have a shape, too
    if (!is_line && mark.kind != Mark::Kind::points)
      text +=
          format_script("set object rectangle from {:.2f},{:.2f} to {:.2f},{:.2f} fc rgb {}{} noborder\n", entry.x + 1,
                        entry.y - 4, entry.x + 15, entry.y + 4, name_of_colour(mark.colour), fill_of(mark));
    return text;
  }

  const Figure& figure_;
  const Theme& theme_;
  Layout layout_;
};

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

FigureScript render(const Figure& figure, const Theme& theme) {
  check_names(figure);
  return {figure.name, Renderer(figure, theme).script(), figure.data};
}

Script data_file(std::string_view figure, std::string_view data, std::size_t tables) {
  const Script name = gnuplot_name(figure);
  return tables == 1 ? name + ".dat" : format_script("{}.{}.dat", name, gnuplot_name(data));
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

}  // namespace headscope
