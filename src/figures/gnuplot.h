// gnuplot as a child process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headscope {

struct GnuplotRun {
  bool ok = false;
  std::string script;    // the script that failed, as it was given; empty when none is named
  std::string message;   // one line: gnuplot's first message about the failure
  std::string warnings;  // all that it printed when it succeeded
};

// Runs `gnuplot -d script...` with working directory `folder`, where the scripts and their data are and the images go.
// The user's own gnuplot start-up file is not read. Throws Error(Fault::runtime) when gnuplot is not installed or
// cannot be started.
GnuplotRun run_gnuplot(const std::vector<std::string>& scripts, const std::filesystem::path& folder);

}  // namespace headscope
