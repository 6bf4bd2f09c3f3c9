// What a command that computes with torch does in its run folder, so that whatever ends it is noted there.
#pragma once

#include <c10/util/Exception.h>

#include "core/console.h"
#include "formats/run_folder.h"

namespace headscope {

// Returns body(). Torch's errors become ours: their what() is a page of addresses.
template <class Body>
auto in_one_line(Body&& body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    throw Error(Fault::runtime, error.what_without_backtrace());
  }
}

// Returns body(). An error becomes the folder's status and goes on to the caller, in one line.
template <class Body>
auto in_run_folder(RunFolder& folder, Body&& body) {
  try {
    return in_one_line(body);
  } catch (const Error& error) {
    folder.finish(error);
    throw;
  }
}

// Calls draw(). Hours of computing are not lost for want of gnuplot: a failure becomes a warning.
template <class Draw>
void draw_or_warn(const std::filesystem::path& run, Console& console, Draw&& draw) {
  console.info("drawing figures");
  try {
    draw();
  } catch (const Error& error) {
    if (error.fault() == Fault::interrupted) throw;
    console.warn(fmt::format("{}; all else is there: draw with 'headscope plot {}'", error.what(), run.string()));
  }
}

}  // namespace headscope
