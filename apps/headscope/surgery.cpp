#include "command.h"
#include "core/error.h"
#include "core/text.h"
#include "heads/figures/surgery_figures.h"
#include "model/checkpoint_files.h"
#include "torch_half.h"

namespace headscope {
namespace {

struct SurgeryFlags {
  SurgeryJob job;
  std::filesystem::path config;
  std::string checkpoint;
  std::vector<ConfigEntry> entries;  // flags, in the order in which they were given
};

// File over defaults, flags over the file.
SurgeryOptions options_of(const SurgeryFlags& flags) {
  ResumedRun run = resumed_run(flags.job.folder, surgery_command, RunWrites::at_the_end, {"device"});
  if (!flags.checkpoint.empty()) run.missing.clear();  // there is something to start with
  SurgeryOptions options =
      options_over<SurgeryOptions>(run, all_entries(flags.config, flags.entries), resolve_options<SurgeryOptions>);
  if (!flags.checkpoint.empty()) options.checkpoint = flags.checkpoint;
  validate(options);
  return options;
}

// "surgery-QK" for runs/study-tiny/QK, and for its checkpoints.
std::string run_name(const std::string& checkpoint) {
  const std::filesystem::path run = run_of_checkpoint(checkpoint);
  return "surgery-" + (run.empty() ? folder_name(checkpoint) : run.filename().string());
}

// One line for each x, one column for each curve: the change of the loss, and its range over repeats.
void print_changes(const std::vector<SurgeryCurve>& curves, const std::string& heading, double unmodified,
                   const std::function<std::string(double)>& x_text) {
  if (curves.empty()) return;
  constexpr int wide = 10;
  std::string line = fmt::format("  {:>9}", heading);
  for (const SurgeryCurve& curve : curves) line += fmt::format("  {:<{}}", curve.by, wide);
  fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  for (std::size_t i = 0; i < curves.front().x.size(); ++i) {
    line = fmt::format("  {:>9}", x_text(curves.front().x[i]));
    for (const SurgeryCurve& curve : curves) {
      std::string cell = signed_text(curve.loss[i] - unmodified, 4);
      if (curve.repeats > 1)
        cell += fmt::format(" ({} to {})", signed_text(curve.lowest[i] - unmodified, 4),
                            signed_text(curve.highest[i] - unmodified, 4));
      line += fmt::format("  {:<{}}", cell, wide);
    }
    fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
  }
  fmt::print("\n");
}

void print_outcome(const SurgeryOutcome& outcome) {
  const SurgeryLosses& losses = outcome.losses;
  const auto d_k = static_cast<double>(outcome.d_k);
  const auto removed = surgery_curves(losses.rows, "remove");
  fmt::print(
      "{}: validation loss {:.4f} nats, {:.4f} with uniform attention (all keys zero)\n"
      "change of the loss{}:\n\n",
      on_one_line(outcome.title), losses.unmodified, losses.uniform,
      removed.empty()
          ? ""
          : fmt::format(" ({} gain or singular value removed first)", json_value(outcome.order).get<std::string>()));
  print_changes(removed, "removed", losses.unmodified,
                [&](double share) { return fmt::format("{:.0f} of {:.0f}", share * d_k, d_k); });
  print_changes(surgery_curves(losses.rows, "quantise"), "bits", losses.unmodified,
                [](double bits) { return fmt::format("{:.0f}", bits); });
  fmt::print("tables (surgery.parquet, surgery.csv) and plots/: {}\n", visible(outcome.out));
}

int surgery(SurgeryFlags& flags, const CommonFlags& common) {
  Console console(common.console);
  flags.job.options = options_of(flags);
  choose_out(flags.job.folder, common, run_name(flags.job.options.checkpoint));
  check_out(flags.job.folder, surgery_command, RunWrites::at_the_end);
  const SurgeryOutcome outcome = torch_half().surgery(flags.job, console);
  if (common.json) {
    nlohmann::ordered_json object = {{"out", outcome.out.string()}};
    object.update(to_json(outcome));
    fmt::print("{}", json_text(object));
  } else if (!common.console.quiet) {
    print_outcome(outcome);
  }
  return 0;
}

}  // namespace

void add_surgery(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<SurgeryFlags>();
  auto* command = app.add_subcommand(
      "surgery", "What a trained model loses when its keys lose dimensions or bits: docs/surgery.md");
  command->add_option("checkpoint", flags->checkpoint, "A checkpoint, or a run, which stands for its newest one")
      ->type_name("CHECKPOINT");
  command->add_option("--config", flags->config, "Configuration file (YAML); flags override it")->type_name("FILE");
  add_option_flags(*command, SurgeryOptions{}, flags->entries);
  command->add_option("--theme", flags->job.theme, "Figures: light or dark [light]")->type_name("NAME");
  add_out_flags(*command, flags->job.folder);
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] { return surgery(*flags, common); });
}

}  // namespace headscope
