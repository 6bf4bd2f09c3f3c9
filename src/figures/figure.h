// The one way to draw: a figure is a gnuplot script and the tables it reads. They are written beside the images, so
// whoever wants another colour or range edits NAME.gp and runs `gnuplot NAME.gp` in that folder.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "figures/script.h"
#include "figures/theme.h"
#include "formats/table.h"

namespace headscope {

// A table that a script reads. `name` is a gnuplot variable that holds the file's name: plot points using "x":"y".
// It is one of ours, never of a file: letters, digits and _, first a letter, and nothing that scripts use already.
// Texts are drawn as enhanced text, so they are ours, too.
struct FigureData {
  std::string name;
  Table table;
};

struct Figure {
  std::string name;  // stem of the files: letters, digits and _
  // Size in units: fonts are 14 and 12 units high. 480 units are one column: printed 8.5 cm wide, the fonts come out as
  // 7 and 6 points, what journals ask for, and the 1600 pixels of the PNG as 478 dots per inch. A figure wider than 600
  // units is meant for the width of a page and has 2 pixels per unit, about 280 dots per inch.
  int width = 480;
  int height = 300;
  Script setup = {};                  // commands before the drawing: ranges, labels, margins
  Script plot = {};                   // commands that draw; run once for each format
  std::vector<FigureData> data = {};  // NAME.dat, or NAME.<data name>.dat when there are several
};

struct Drawn {
  std::vector<std::filesystem::path> files;  // figure by figure: png, svg, script, data
  std::string warnings;                      // what gnuplot printed; empty as a rule
};

// Writes NAME.png, NAME.svg, NAME.gp and the data of every figure into `folder` (made when absent). All files are made
// in a hidden folder inside it and renamed when the last figure is drawn: when anything fails, what was there stays as
// it was. Several figures share a gnuplot process, and processes run beside each other. The same figures give the same
// bytes. Throws Error(Fault::runtime), with the figure's name and gnuplot's message, when a figure cannot be drawn.
Drawn draw(std::span<const Figure> figures, const std::filesystem::path& folder, const Theme& theme);
Drawn draw(const Figure& figure, const std::filesystem::path& folder, const Theme& theme);

// The whole script, as `draw` writes it. An internal error when a name is none of ours.
std::string script_of(const Figure& figure, const Theme& theme);

// Tab-separated with a header line; missing values are NaN. In texts, control characters become spaces and " becomes ';
// a text that begins with # is put in quotes, since gnuplot would skip the row.
std::string to_dat(const Table& table);

// NAME.dat, or NAME.<data name>.dat.
Script data_file(const Figure& figure, const FigureData& data);

// "set lmargin at screen ..." for margins in the figure's units.
Script margins(const Figure& figure, double left, double right, double top, double bottom);

}  // namespace headscope
