#include "report/figure.h"

#include <cstdlib>
#include <cstring>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/parallel.h"
#include "report/gnuplot.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

double pixels_per_unit(const Figure& figure) {
  return figure.width <= 600 ? 10.0 / 3 : 2.0;
}

std::string data_file(const Figure& figure, const FigureData& data) {
  return figure.data.size() == 1 ? figure.name + ".dat" : fmt::format("{}.{}.dat", figure.name, data.name);
}

// A hidden folder inside `parent` (so that it is on the same disk) that goes away with this object.
class Workshop {
 public:
  explicit Workshop(const fs::path& parent) {
    std::string name = (fs::absolute(parent) / ".drawing-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      fail_runtime("cannot draw into {}: {}", parent.string(), std::strerror(errno));
    folder_ = name;
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  [[nodiscard]] const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

std::string cell_text(const Column& column, std::size_t row) {
  if (const auto* integers = std::get_if<Integers>(&column.values)) return fmt::format("{}", (*integers)[row]);
  if (const auto* numbers = std::get_if<Numbers>(&column.values))
    return std::isnan((*numbers)[row]) ? "NaN" : fmt::format("{}", (*numbers)[row]);
  std::string text = std::get<Texts>(column.values)[row];
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\t' || c == '\n' || c == '\r'; }, ' ');
  return text;
}

// Draws figures[first], figures[first + stride], ... in one gnuplot process, whose start costs as much as a figure.
std::string draw_share(std::span<const Figure> figures, std::size_t first, std::size_t stride, const fs::path& folder,
                       const fs::path& workshop) {
  std::vector<std::string> scripts;
  for (std::size_t i = first; i < figures.size(); i += stride)
    scripts.push_back(fmt::format("../{}.gp", figures[i].name));
  const GnuplotRun run = run_gnuplot(scripts, workshop, "..");
  if (run.ok) return run.warnings;
  // Ctrl-C reaches the child as well; then its end is no failure of the figure.
  if (interrupt_requested()) throw Error(Fault::interrupted, "interrupted while drawing figures");
  const fs::path script = run.script.empty() ? folder : folder / fs::path(run.script).filename();
  fail_runtime("gnuplot could not draw {}: {}", script.string(), run.message);
}

void check_names(std::span<const Figure> figures) {
  const auto is_plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-'; };
  for (const Figure& figure : figures)
    HEADSCOPE_CHECK(!figure.name.empty() && std::all_of(figure.name.begin(), figure.name.end(), is_plain),
                    "figure name = '{}'", figure.name);
}

}  // namespace

std::string to_dat(const Table& table) {
  HEADSCOPE_CHECK(!table.columns().empty(), "a table without columns");
  std::string text;
  for (const Column& column : table.columns()) text.append(column.name).push_back('\t');
  text.back() = '\n';
  for (std::size_t row = 0; row < table.rows(); ++row) {
    for (const Column& column : table.columns()) text.append(cell_text(column, row)).push_back('\t');
    text.back() = '\n';
  }
  return text;
}

std::string margins(const Figure& figure, double left, double right, double top, double bottom) {
  const double width = figure.width;
  const double height = figure.height;
  return fmt::format(
      "set lmargin at screen {:.4f}; set rmargin at screen {:.4f}; set tmargin at screen {:.4f}; "
      "set bmargin at screen {:.4f}\n",
      left / width, 1 - right / width, 1 - top / height, bottom / height);
}

std::string script_of(const Figure& figure, const Theme& theme) {
  std::string text = fmt::format(
      "# Edit and draw again, in this folder: gnuplot {}.gp\nreset session\nset encoding utf8\n", figure.name);
  text += "set datafile separator tab\nset datafile columnheaders\nset datafile missing 'NaN'\n";
  for (const FigureData& data : figure.data)
    text += fmt::format("{} = {}\n", data.name, gnuplot_literal(data_file(figure, data)));
  text += fmt::format("\n{}\n{}\n", style_commands(theme), figure.setup);
  const double scale = pixels_per_unit(figure);
  const auto pixels = [&](int units) { return static_cast<int>(std::lround(units * scale)); };
  // pngcairo takes font sizes in points at 96 dots per inch, svg in units: 3/4 makes them equal. Its points are
  // smaller, too.
  text += fmt::format(
      "do for [format in 'png svg'] {{\n"
      "if (format eq 'png') {{\n"
      "set terminal pngcairo enhanced size {0},{1} font 'DejaVu Sans,14' fontscale {2:.4g} linewidth {3:.4g} "
      "pointscale {4:.4g} rounded background '{5}'\n"
      "}} else {{\n"
      "set terminal svg enhanced size {6},{7} fixed name '{8}' font 'DejaVu Sans,14' rounded background '{5}'\n"
      "}}\n"
      "set output '{8}.'.format\n",
      pixels(figure.width), pixels(figure.height), scale * 0.75, scale, scale * 1.33, theme.paper, figure.width,
      figure.height, figure.name);
  text += figure.plot;
  text += "}\nunset output\n";
  return text;
}

Drawn draw(std::span<const Figure> figures, const fs::path& folder, const Theme& theme) {
  check_names(figures);
  Drawn drawn;
  if (figures.empty()) return drawn;
  std::error_code fault;
  fs::create_directories(folder, fault);
  if (fault) fail_runtime("cannot make the folder {}: {}", folder.string(), fault.message());
  for (const Figure& figure : figures) {
    for (const FigureData& data : figure.data) write_file(folder / data_file(figure, data), to_dat(data.table));
    write_file(folder / (figure.name + ".gp"), script_of(figure, theme));
  }

  const Workshop workshop(folder);
  // Below about four figures a process spends more on starting than on drawing.
  const std::size_t processes = std::clamp<std::size_t>(figures.size() / 4, 1, available_cores());
  std::vector<std::string> warnings(processes);
  parallel_for(processes, processes,
               [&](std::size_t i) { warnings[i] = draw_share(figures, i, processes, folder, workshop.folder()); });

  for (const std::string& text : warnings) drawn.warnings += text;
  for (const Figure& figure : figures) {
    for (const char* format : {".png", ".svg"}) {
      const std::string file = figure.name + format;
      write_file(folder / file, read_file(workshop.folder() / file));
      drawn.files.push_back(folder / file);
    }
    drawn.files.push_back(folder / (figure.name + ".gp"));
    for (const FigureData& data : figure.data) drawn.files.push_back(folder / data_file(figure, data));
  }
  return drawn;
}

Drawn draw(const Figure& figure, const fs::path& folder, const Theme& theme) {
  return draw(std::span<const Figure>(&figure, 1), folder, theme);
}

}  // namespace headscope
