#include "command.h"
#include "core/error.h"
#include "experiments/train_run.h"
#include "figures/theme.h"
#include "heads/roles/run.h"
#include "heads/surgery.h"
#include "plasticity/run.h"
#include "study/analyze.h"

namespace headscope {
namespace {

struct PlotFlags {
  std::filesystem::path run;
  std::string theme = "light";
  bool per_head = false;
};

// Draws into `out` from what the run holds.
std::vector<std::filesystem::path> redraw(const PlotFlags& flags, const std::filesystem::path& out) {
  const std::string command = read_manifest(flags.run).value("command", "");
  if (command == plasticity_command) return draw_plasticity_run(flags.run, out, flags.theme, flags.per_head);
  if (command == compare_command) return draw_comparison_run(flags.run, out, flags.theme);
  if (command == study_command) return draw_study_run(flags.run, out, flags.theme);
  if (command == surgery_command) return draw_surgery_run(flags.run, out, flags.theme);
  if (command == train_command || command == inspect_command || command == roles_command)
    return draw_tracked_run(flags.run, out, flags.theme);
  fail_input("{}: is a run of '{}', which has no figures", flags.run.string(), command);
}

std::vector<std::filesystem::path> plot_run(const PlotFlags& flags) {
  theme_named(flags.theme);  // an unknown name is refused before anything is read
  read_manifest(flags.run);  // of the run itself: the run around a folder is not meant
  RunFolder run = RunFolder::add_to(flags.run);
  return run.live([&] {
    std::vector<std::filesystem::path> files = redraw(flags, run.place());
    for (auto& file : files) file = run.final_name(file);
    run.finish();
    return files;
  });
}

}  // namespace

void add_plot(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<PlotFlags>();
  auto* command = app.add_subcommand("plot", "Draw the figures of a run again");
  command->add_option("run", flags->run, "The run folder")->required()->type_name("RUN");
  command->add_option("--theme", flags->theme, "light or dark [light]")->type_name("NAME");
  command->add_flag("--per-head", flags->per_head, "Bucket heat maps of every head, too");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] {
    const auto files = plot_run(*flags);
    if (common.json) {
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (const auto& file : files) list.push_back(file.string());
      fmt::print("{}", json_text(nlohmann::ordered_json{{"files", list}}));
    } else if (!common.console.quiet) {
      for (const auto& file : files)
        if (file.extension() == ".png") fmt::print("{}\n", visible(file));
    }
    return 0;
  });
}

}  // namespace headscope
