// The one renderer: a figure's gnuplot script.
#pragma once

#include <span>
#include <string>

#include "figures/figure.h"
#include "figures/script.h"

namespace headscope {

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
