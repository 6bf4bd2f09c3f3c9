// The one way to draw: a figure is a gnuplot script and the tables it reads. They are written beside the images, so
// whoever wants another colour or range edits NAME.gp and runs `gnuplot NAME.gp` in that folder.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/table.h"
#include "report/theme.h"

namespace headscope {

// A table that a script reads. `name` is a gnuplot variable that holds the file's name: plot points using "x":"y".
struct FigureData {
  std::string name;
  Table table;
};

struct Figure {
  std::string name;  // stem of the files: letters, digits, _ and -
  // Size in units: fonts are 14 and 12 units high. 480 units are one column: printed 8.5 cm wide, the fonts come out as
  // 7 and 6 points, what journals ask for, and the 1600 pixels of the PNG as 478 dots per inch. A figure wider than 600
  // units is meant for the width of a page and has 2 pixels per unit, about 280 dots per inch.
  int width = 480;
  int height = 300;
  std::string setup = {};             // commands before the drawing: ranges, labels, margins
  std::string plot = {};              // commands that draw; run once for each format
  std::vector<FigureData> data = {};  // NAME.dat, or NAME.<data name>.dat when there are several
};

struct Drawn {
  std::vector<std::filesystem::path> files;  // figure by figure: png, svg, script, data
  std::string warnings;                      // what gnuplot printed; empty as a rule
};

// Writes NAME.png, NAME.svg, NAME.gp and the data of every figure into `folder` (made when absent), each file
// atomically. Several figures share a gnuplot process, and processes run beside each other. The same figures give the
// same bytes. Throws Error(Fault::runtime), with gnuplot's message and the script's path, when a figure cannot be
// drawn; images drawn before are then not written, scripts and data are.
Drawn draw(std::span<const Figure> figures, const std::filesystem::path& folder, const Theme& theme);
Drawn draw(const Figure& figure, const std::filesystem::path& folder, const Theme& theme);

// The whole script, as `draw` writes it.
std::string script_of(const Figure& figure, const Theme& theme);

// Tab-separated with a header line; missing values are NaN; tabs and line ends in texts become spaces.
std::string to_dat(const Table& table);

// "set lmargin at screen ..." for margins in the figure's units.
std::string margins(const Figure& figure, double left, double right, double top, double bottom);

}  // namespace headscope
