#include "command.h"

namespace headscope {

void add_common_flags(CLI::App& command, CommonFlags& flags) {
  command.add_flag("--json", flags.json, "Print one JSON object on standard output");
  command.add_flag("-q,--quiet", flags.console.quiet, "Print warnings and errors only");
  command.add_flag("-v,--verbose", flags.console.verbose, "Print details, too");
}

std::string not_empty(const std::string& name) {
  return name.empty() ? "the name of a folder is empty" : "";
}

void add_out_flags(CLI::App& command, RunFolderOptions& folder) {
  command.add_option("--out", folder.out, "Folder for the results (default: a new one in runs/)")
      ->type_name("DIR")
      ->check(not_empty);
  command.add_flag("--overwrite", folder.overwrite, "Replace the run that is in --out");
  command.add_flag("--resume", folder.resume, "Go on with the run that is in --out");
}

void choose_out(RunFolderOptions& folder, const CommonFlags& common, const std::string& name) {
  folder.command_line = common.command_line;
  if (!folder.out.empty()) return;
  if (folder.resume || folder.overwrite) fail_input("--resume and --overwrite need the folder: name it with --out");
  const std::filesystem::path runs = "runs";
  folder.out = runs / name;
  for (int number = 2; std::filesystem::exists(folder.out); ++number)
    folder.out = runs / fmt::format("{}-{}", name, number);
}

ResumedRun resumed_run(const RunFolderOptions& folder, const char* command, RunWrites writes,
                       std::vector<std::string> free_keys) {
  ResumedRun run{{}, {}, std::move(free_keys)};
  if (const auto manifest = manifest_to_resume(folder, command, writes)) {
    run.manifest = *manifest;
    run.entries = entries_of(in_current_words(manifest->at("config")), folder.out.string());
  } else if (folder.resume) {
    run.missing = folder.out.string();
  }
  return run;
}

void fail_nothing_to_resume(const std::string& folder) {
  fail_input("--resume {}: {}; leave --resume out to start a run", folder,
             std::filesystem::exists(folder) ? "is empty" : "is not there");
}

std::string visible(const std::filesystem::path& path) {
  return on_one_line(path.string());
}

std::string folder_name(const std::filesystem::path& folder) {
  if (folder.empty()) fail_input("the name of a folder is empty");
  return absolute_folder(folder).filename().string();
}

void add_key_flag(CLI::App& command, std::vector<ConfigEntry>& entries, const char* flag, const char* key,
                  const char* type, const char* help) {
  command
      .add_option_function<std::string>(
          flag,
          [&entries, flag, key](const std::string& value) {
            entries.push_back({key, value, flag});
          },
          help)
      ->type_name(type);
}

void add_set_flag(CLI::App& command, std::vector<ConfigEntry>& entries, const char* help) {
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&entries](const std::vector<std::string>& assignments) {
            for (const std::string& assignment : assignments) entries.push_back(parse_assignment(assignment));
          },
          help)
      ->type_name("KEY=VALUE");
}

std::vector<ConfigEntry> all_entries(const std::filesystem::path& config, const std::vector<ConfigEntry>& flags) {
  std::vector<ConfigEntry> entries;
  if (!config.empty()) entries = read_yaml(config);
  entries.insert(entries.end(), flags.begin(), flags.end());
  return entries;
}

std::string parameters_text(std::int64_t count) {
  const double value = static_cast<double>(count) / 1e6;
  if (value >= 1000) return fmt::format("{:.2f} G", value / 1000);
  return fmt::format("{:.{}f} M", value, value < 10 ? 2 : 1);
}

nlohmann::ordered_json to_json(const Error& error) {
  const std::string message = error.what();
  const std::size_t hint = message.rfind("; ");
  return {{"error", message},
          {"hint", hint == std::string::npos ? "" : message.substr(hint + 2)},
          {"exit", error.exit_code()}};
}

}  // namespace headscope
