// What a model loses when its keys lose dimensions or bits (docs/surgery.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "figures/figure.h"
#include "figures/theme.h"
#include "formats/table.h"
#include "heads/figures/surgery_curves.h"

namespace headscope {

struct SurgeryFigureData {
  std::string title;  // whose keys; may be empty
  Table rows;         // surgery.parquet
  double unmodified = 0;
  double uniform = 0;  // with all keys zero
};

// Draws into `folder` and returns every file written (png, svg, gp, dat):
//   surgery_removal        validation loss against the share of dimensions removed; random orders with their range
//   surgery_quantisation   validation loss against bits
// A figure without values says so.
std::vector<std::filesystem::path> draw_surgery_figures(const SurgeryFigureData& data,
                                                        const std::filesystem::path& folder,
                                                        const Theme& theme = light_theme());

// The figures themselves, without drawing them.
std::vector<Figure> surgery_figures(const SurgeryFigureData& data);

}  // namespace headscope
