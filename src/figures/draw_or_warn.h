// Figures at the end of a run that has taken hours.
#pragma once

#include <filesystem>

#include "core/console.h"
#include "core/error.h"

namespace headscope {

// Calls draw(). Nothing computed is lost for want of gnuplot: a failure becomes a warning.
template <class Draw>
void draw_or_warn(const std::filesystem::path& run, Console& console, Draw&& draw) {
  console.info("drawing figures");
  try {
    draw();
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    if (ours != nullptr && ours->fault() == Fault::interrupted) throw;
    console.warn(fmt::format("{}; all else is there: draw with 'headscope plot {}'", error.what(), run.string()));
  }
}

}  // namespace headscope
