// What a command that computes with torch does in its run folder, so that whatever ends it is noted there.
#pragma once

#include <c10/util/Exception.h>

#include "core/console.h"
#include "formats/run_folder.h"

namespace headscope {

// Returns body(). An error becomes the folder's status and goes on to the caller, in one line.
template <class Body>
auto in_run_folder(RunFolder& folder, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    folder.finish(error);
    throw;
  } catch (const c10::Error& error) {  // its what() is a page of addresses
    const Error one_line(Fault::runtime, error.what_without_backtrace());
    folder.finish(one_line);
    throw one_line;
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
