#include "command.h"

namespace headscope {

void add_common_flags(CLI::App& command, CommonFlags& flags) {
  command.add_flag("--json", flags.json, "Print one JSON object on standard output");
  command.add_flag("-q,--quiet", flags.console.quiet, "Print warnings and errors only");
  command.add_flag("-v,--verbose", flags.console.verbose, "Print details, too");
}

void add_out_flags(CLI::App& command, RunFolderOptions& folder) {
  command.add_option("--out", folder.out, "Folder for the results (default: a new one in runs/)")->type_name("DIR");
  command.add_flag("--overwrite", folder.overwrite, "Replace the run that is in --out");
  command.add_flag("--resume", folder.resume, "Go on with the run that is in --out");
}

void choose_out(RunFolderOptions& folder, const std::string& name) {
  if (!folder.out.empty()) return;
  if (folder.resume || folder.overwrite) fail_input("--resume and --overwrite need the folder: name it with --out");
  const std::filesystem::path runs = "runs";
  folder.out = runs / name;
  for (int number = 2; std::filesystem::exists(folder.out); ++number)
    folder.out = runs / fmt::format("{}-{}", name, number);
}

}  // namespace headscope
