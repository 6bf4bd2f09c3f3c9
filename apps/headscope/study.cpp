#include <cmath>

#include "command.h"
#include "core/error.h"
#include "stats/welch.h"
#include "verdict/analyze.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

std::string run_name(const AnalyzeJob& job) {
  return "study-" + std::filesystem::absolute(job.folders.front() / "").parent_path().filename().string();
}

// "65.70", with several seeds "65.70 ± 0.31" (95 %), without any "-".
std::string value_text(const MeanInterval& value, int digits) {
  if (value.n == 0 || std::isnan(value.mean)) return "-";
  const double half = (value.high - value.low) / 2;
  return std::isnan(half) ? fmt::format("{:.{}f}", value.mean, digits)
                          : fmt::format("{:.{}f} ± {:.{}f}", value.mean, digits, half, digits);
}

void print_json(const AnalyzeOutcome& outcome) {
  ordered_json object = {
      {"out", outcome.out.string()}, {"verdict", to_json(outcome.verdict)}, {"tokens", outcome.tokens}};
  for (std::size_t i = 0; i < n_conditions; ++i) {
    const MeanInterval loss = mean_interval(outcome.val_loss[i]);
    object["val_loss"][std::string(condition_letters[i])] = loss.n == 0 ? ordered_json() : ordered_json(loss.mean);
  }
  object["seconds"] = outcome.seconds;
  fmt::print("{}\n", object.dump(2));
}

void print_summary(const AnalyzeOutcome& outcome) {
  fmt::print("  condition      mean key PR     validation loss   (after {:.1f} M tokens)\n",
             static_cast<double>(outcome.tokens) / 1e6);
  for (std::size_t i = 0; i < n_conditions; ++i)
    fmt::print("  {} {:<11}  {:<14}  {}\n", condition_letters[i], condition_tags[i],
               value_text(outcome.verdict.mean_pr[i], 2), value_text(mean_interval(outcome.val_loss[i]), 3));
  fmt::print("\nverdict: {}\n  {}\n\n", conclusion_name(outcome.verdict.conclusion), outcome.verdict.sentence);
  fmt::print("figures (1_loss.png to 5_gamma_cv.png) and combined.json: {}\n", outcome.out.string());
}

}  // namespace

void add_study(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto job = std::make_shared<AnalyzeJob>();
  auto* command = app.add_subcommand("study", "The causal QK-Norm study: verdict and figures");
  command
      ->add_option(
          "--analyze", job->folders,
          "Folder with QK/, QK_frozen/ and NoQK/results.json, or with such folders seed_N; several: one per seed")
      ->type_name("DIR");
  command->add_option("--tau", job->tau, "Smaller differences of the mean key PR count as none [1]")->type_name("N");
  command->add_option("--theme", job->theme, "Figures: light or dark [light]")->type_name("NAME");
  add_out_flags(*command, job->folder);
  add_common_flags(*command, common);
  command->callback([job, &common, &chosen] {
    chosen = [job, &common] {
      if (job->folders.empty())
        fail_input(
            "--analyze DIR is required: the folder with QK/results.json, QK_frozen/results.json, NoQK/results.json");
      Console console(common.console);
      job->command_line = common.command_line;
      choose_out(job->folder, run_name(*job));
      const AnalyzeOutcome outcome = analyze_study(*job, console);
      if (common.json)
        print_json(outcome);
      else if (!common.console.quiet)
        print_summary(outcome);
      return 0;
    };
  });
}

}  // namespace headscope
