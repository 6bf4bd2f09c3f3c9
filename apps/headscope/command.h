// What every subcommand shares: flags of the console and of the run folder, and options structs as flags.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "capture/options.h"
#include "core/config.h"
#include "core/console.h"
#include "core/json_text.h"
#include "run/run_folder.h"
#include "settings/setup.h"

namespace headscope {

// Flags that any subcommand takes.
struct CommonFlags {
  ConsoleOptions console;
  bool json = false;
  std::string command_line;  // as typed, for the manifest
};

// A subcommand returns its exit code.
using Command = std::function<int()>;

void add_common_flags(CLI::App& command, CommonFlags& flags);
void add_out_flags(CLI::App& command, RunFolderOptions& folder);

// A check of --out: an empty variable of a script must not mean the default folder.
std::string not_empty(const std::string& name);

// Completes the options: `out` as it was given, otherwise a new folder runs/NAME, runs/NAME-2, …; and the command line.
void choose_out(RunFolderOptions& folder, const CommonFlags& common, const std::string& name);

// Of a failure, for scripts that asked for JSON: `error`, `hint` (what to do: it stands behind the last semicolon of a
// message) and `exit`.
nlohmann::ordered_json to_json(const Error& error);

// A name as a person may see it: control characters, which a terminal would obey, become spaces.
std::string visible(const std::filesystem::path& path);

// The last name of a folder, also of "." and of "runs/first/".
std::string folder_name(const std::filesystem::path& folder);

// A flag for one key of the configuration; its value goes to `entries`, which must outlive the command.
void add_key_flag(CLI::App& command, std::vector<ConfigEntry>& entries, const char* flag, const char* key,
                  const char* type, const char* help);

// A flag for a number that is no key of the configuration, read by the same rules.
template <class T>
void add_number_flag(CLI::App& command, const char* flag, T& value, const char* type, const char* help) {
  command
      .add_option_function<std::string>(
          flag,
          [&value, flag](const std::string& text) {
            if (!parse_value(text, value)) fail_input("{} is '{}'; expected {}", flag, text, expected_value<T>());
          },
          help)
      ->type_name(type);
}

// --set KEY=VALUE for any key.
void add_set_flag(CLI::App& command, std::vector<ConfigEntry>& entries, const char* help);

// The entries of the file, where there is one, then those of the flags: flags win.
std::vector<ConfigEntry> all_entries(const std::filesystem::path& config, const std::vector<ConfigEntry>& flags);

// What a run that --resume goes on with was configured with, and the keys that may change all the same.
struct ResumedRun {
  nlohmann::ordered_json manifest;   // null: no run is gone on with
  std::vector<ConfigEntry> entries;  // its configuration
  std::vector<std::string> free_keys;
  std::string missing = {};  // the folder that --resume names, where nothing is
};
[[noreturn]] void fail_nothing_to_resume(const std::string& folder);
ResumedRun resumed_run(const RunFolderOptions& folder, const char* command, RunWrites writes,
                       std::vector<std::string> free_keys = {});

// The options that the entries give, over those of the run. `resolve` makes options of entries. An entry that would
// change the run is refused by the name of its flag.
template <class Options, class Resolve>
Options options_over(const ResumedRun& run, const std::vector<ConfigEntry>& entries, const Resolve& resolve) {
  if (!run.missing.empty() && entries.empty()) fail_nothing_to_resume(run.missing);
  if (run.manifest.is_null()) return resolve(entries);
  const Options before = resolve(run.entries);
  std::vector<ConfigEntry> all = run.entries;
  all.insert(all.end(), entries.begin(), entries.end());
  Options options = resolve(all);
  for (const ConfigEntry& entry : entries) {
    const auto was = value_at(before, entry.key), now = value_at(options, entry.key);
    if (was != now && std::ranges::find(run.free_keys, entry.key) == run.free_keys.end())
      fail_input("{}: {} is {}, and {} in the run; leave it out to go on, or start another run with --out", entry.where,
                 entry.key, now.dump(), was.dump());
  }
  return options;
}

// The options of a command that trains, which may go on with a run.
template <class Options>
Options setup_over(const RunFolderOptions& folder, const char* command, const std::vector<ConfigEntry>& entries,
                   std::vector<std::string> free_keys = {}) {
  // The device is compared later: auto may mean that of the run.
  free_keys.emplace_back("device");
  for (const std::string& key : free_keys_of_training()) free_keys.push_back(key);
  const ResumedRun run = resumed_run(folder, command, RunWrites::as_it_goes, std::move(free_keys));
  return options_over<Options>(run, entries, resolve_setup<Options>);
}

// A number with as many digits as make sense: "0.61 M", "49.2 M".
std::string parameters_text(std::int64_t count);

// One flag for each field of an options struct: --max-tokens-per-head for max_tokens_per_head, --no-checks for checks,
// which is true unless said otherwise. Values go to `entries`, to be applied after the configuration file.
template <class Options>
void add_option_flags(CLI::App& command, const Options& defaults, std::vector<ConfigEntry>& entries) {
  Options::fields(defaults, [&](std::string name, const auto& value, const char* help, const auto&...) {
    using T = std::remove_cvref_t<decltype(value)>;
    std::string flag = "--" + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    if constexpr (std::is_same_v<T, bool>) {
      if (value) flag.insert(2, "no-");  // what is on can be turned off
      command
          .add_flag_callback(
              flag,
              [&entries, name, flag, turned = value ? "false" : "true"] {
                entries.push_back({name, turned, flag});
              },
              value ? fmt::format("Leave out: {}", help) : help)
          ->group("Configuration");
    } else {
      const nlohmann::json shown = json_value(value);
      const bool has_default = !shown.is_null() && shown != "";
      const std::string text =
          has_default ? fmt::format("{} [{}]", help, shown.is_string() ? shown.get<std::string>() : shown.dump())
                      : std::string(help);
      const std::string names = name == "max_workers" ? flag + ",--workers" : flag;
      command
          .add_option_function<std::string>(
              names,
              [&entries, name, flag](const std::string& text_value) {
                entries.push_back({name, text_value, flag});
              },
              text)
          ->type_name(std::is_arithmetic_v<T> || IsOptional<T>::value ? "N" : "TEXT")
          ->group("Configuration");
    }
  });
  add_set_flag(command, entries, "Any configuration key, as key=value");
}

// The text of a model whose queries and keys are captured, and how: the flags of `capture` that another command takes.
void add_capture_flags(CLI::App& command, std::vector<std::string>& texts, std::vector<ConfigEntry>& entries);

// The model and the data of a capture that is gone on with, where none are named; its other entries are its options.
void add_resumed_inputs(const nlohmann::ordered_json& config, CaptureInputs& inputs);
bool is_capture_input(const ConfigEntry& entry);

// --no-report of a command that writes report.html into its run at the end.
void add_report_flag(CLI::App& command, bool& no_report);

// The command goes on with a run that is complete; to be asked before it begins.
bool is_complete_already(const RunFolderOptions& folder);

// The same, and its page is there, too: nothing is written to it. A kill may have come between the two.
bool stays_as_it_is(const RunFolderOptions& folder);

// After everything else: report.html of a run that is finished, and a line that says where it is. A failure is a
// warning.
void finish_with_report(const std::filesystem::path& run, bool no_report, const CommonFlags& common);

// What is to be run when the command line names the command.
inline void when_chosen(CLI::App& command, Command& chosen, const Command& run) {
  command.callback([&chosen, run] { chosen = run; });
}

// The subcommands. Each keeps its own state alive and leaves what is to be run in `chosen`.
void add_plasticity(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_study(CLI::App& app, CommonFlags& flags, Command& chosen);
// The program as a worker of a study (study/worker_board.h). Returns the exit code.
int study_worker();
void add_train(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_capture(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_inspect(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_heads(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_roles(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_parity(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_surgery(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_plot(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_report(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_config(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_bench(CLI::App& app, CommonFlags& flags, Command& chosen);
void add_tokenize(CLI::App& app, CommonFlags& flags, Command& chosen);

}  // namespace headscope
