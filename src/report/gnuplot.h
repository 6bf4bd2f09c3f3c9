// gnuplot as a child process, and texts as gnuplot reads them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

// A single-quoted gnuplot string that shows `text` as it is: characters that enhanced text would interpret (_ ^ { } @ &
// ~ \) are escaped, control characters become spaces. In single quotes gnuplot runs no `command` and expands no @macro,
// so a hostile model name stays a name.
std::string gnuplot_text(std::string_view text);

// The same without enhanced text: for file names.
std::string gnuplot_literal(std::string_view text);

// At most `limit` characters (UTF-8 sequences), with an ellipsis in the middle where some were left out.
std::string shorten(std::string_view text, std::size_t limit);

struct GnuplotRun {
  bool ok = false;
  std::string script;    // the script that failed, as it was given; empty when none is named
  std::string message;   // one line: gnuplot's first message about the failure
  std::string warnings;  // all that it printed when it succeeded
};

// Runs `gnuplot -d script...` with working directory `folder`, where it writes; scripts are relative to `folder`, and
// data files are also looked for in `data_folder` (relative to `folder`). The user's own gnuplot start-up file is not
// read. Throws Error(Fault::runtime) when gnuplot is not installed or cannot be started.
GnuplotRun run_gnuplot(const std::vector<std::string>& scripts, const std::filesystem::path& folder,
                       const std::string& data_folder);

}  // namespace headscope
