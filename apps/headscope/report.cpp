#include "page/report.h"

#include "command.h"

namespace headscope {
namespace {

void warn_of_size(const ReportOutcome& outcome, Console& console) {
  if (!outcome.too_large.empty()) console.warn(outcome.too_large);
}

}  // namespace

void add_report_flag(CLI::App& command, bool& no_report) {
  command.add_flag("--no-report", no_report, "Leave out: report.html, the page of the run (docs/report.md)");
}

bool is_complete_already(const RunFolderOptions& folder) {
  return (folder.resume || folder.join) && is_complete(folder.out);
}

bool stays_as_it_is(const RunFolderOptions& folder) {
  std::error_code error;
  return is_complete_already(folder) && std::filesystem::exists(folder.out / report_name, error);
}

void finish_with_report(const std::filesystem::path& run, bool no_report, const CommonFlags& common) {
  if (no_report) return;
  try {
    const ReportOptions options{.runs = {run}};
    const ReportOutcome outcome = write_report(options);
    Console console(common.console);
    warn_of_size(outcome, console);  // its notes are what the command itself has said
    if (!common.json && !common.console.quiet) fmt::print("{}\n", to_terminal(outcome));
  } catch (const std::exception& error) {
    Console(common.console).warn(fmt::format("the run is complete, but has no report: {}", error.what()));
  }
}

void add_report(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto options = std::make_shared<ReportOptions>();
  auto* command = app.add_subcommand("report", "One HTML page of a run, or of several, that works without a network");
  command->add_option("runs", options->runs, "The run folders")->required()->type_name("RUN");
  command->add_option("--out", options->out, "The file [report.html in the first run]")
      ->type_name("FILE")
      ->check([](const std::string& name) { return name.empty() ? std::string("the name of a file is empty") : ""; });
  add_number_flag(*command, "--max-size", options->max_size, "MB", "Reduce the data until the file is smaller [5]");
  command->add_option("--metrics", options->metrics, "These metrics and groups only (docs/measurements.md) [all]")
      ->type_name("NAME,NAME");
  command->add_option("--heads", options->heads, "These query heads only, such as L1H2,L3H0 [all]")
      ->type_name("NAME,NAME");
  add_number_flag(*command, "--moments", options->moments, "N",
                  "At most so many moments of each source [300, fewer where the file would be too large]");
  command->add_flag("--exact", options->exact, "All moments, as float32, however large the file");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [options, &common] {
    const ReportOutcome outcome = write_report(*options);
    Console console(common.console);
    for (const std::string& note : outcome.notes) console.warn(note);
    warn_of_size(outcome, console);
    if (common.json)
      fmt::print("{}", json_text(to_json(outcome)));
    else if (!common.console.quiet)
      fmt::print("{}\n", to_terminal(outcome));
    return 0;
  });
}

}  // namespace headscope
