#include "command.h"
#include "core/error.h"
#include "core/lists.h"
#include "experiments/train_run.h"
#include "figures/theme.h"
#include "heads/figures/metric_figures.h"
#include "heads/ranking.h"
#include "heads/roles/run.h"
#include "heads/surgery.h"
#include "plasticity/run.h"
#include "study/analyze.h"

namespace headscope {
namespace {

using Files = std::vector<std::filesystem::path>;

struct PlotFlags {
  std::filesystem::path run, out;
  std::string theme = "light";
  bool per_head = false;
  std::string layers, heads;
  MetricFigureOptions metric;
};

Files draw_metric(const PlotFlags& flags, const std::filesystem::path& out) {
  MetricFigureOptions options = flags.metric;
  if (!flags.layers.empty()) options.layers = parse_index_list(flags.layers, "--layers");
  if (!flags.heads.empty()) options.heads = comma_separated(flags.heads);
  options.title = read_facts(flags.run).title;
  return draw(metric_figures(read_tracks(flags.run), read_batch_shape(flags.run), options), out / plots_name,
              theme_named(flags.theme))
      .files;
}

// Draws into `out` from what the run holds.
Files redraw(const PlotFlags& flags, const std::filesystem::path& out) {
  if (!flags.metric.metric.empty()) return draw_metric(flags, out);
  const std::string command = read_manifest(flags.run).value("command", "");
  if (flags.per_head && command != plasticity_command)
    fail_input("--per-head: bucket heat maps belong to runs of '{}'; this is one of '{}'", plasticity_command, command);
  if (command == plasticity_command) return draw_plasticity_run(flags.run, out, flags.theme, flags.per_head);
  if (command == compare_command) return draw_comparison_run(flags.run, out, flags.theme);
  if (command == study_command) return draw_study_run(flags.run, out, flags.theme);
  if (command == surgery_command) return draw_surgery_run(flags.run, out, flags.theme);
  if (command == train_command || command == inspect_command || command == roles_command)
    return draw_tracked_run(flags.run, out, flags.theme);
  fail_input("{}: is a run of '{}', which has no figures", flags.run.string(), command);
}

Files plot_run(const PlotFlags& flags) {
  theme_named(flags.theme);  // an unknown name is refused before anything is read
  if (flags.metric.metric.empty()) {
    if (!flags.layers.empty() || !flags.heads.empty() || !flags.metric.source.empty())
      fail_input("--heads, --layers and --source belong to --metric; name the metric to draw");
    read_manifest(flags.run);  // of the run itself: the run around a folder is not meant
  }
  if (!flags.out.empty()) {
    if (is_run(flags.out)) fail_input("--out {}: is a run; choose another folder for the figures", flags.out.string());
    refuse_part_of_a_run(flags.out);
    return redraw(flags, flags.out);
  }
  RunFolder run = RunFolder::add_to(flags.run);
  return run.live([&] {
    Files files = redraw(flags, run.place());
    for (auto& file : files) file = run.final_name(file);
    run.finish();
    return files;
  });
}

}  // namespace

void add_plot(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<PlotFlags>();
  auto* command = app.add_subcommand("plot", "Draw the figures of a run again, or any metric of its heads");
  command->add_option("run", flags->run, "The run folder")->required()->type_name("RUN");
  command->add_option("--metric", flags->metric.metric, "Curves and a map of this metric (docs/measurements.md)")
      ->type_name("METRIC");
  command->add_option("--heads", flags->heads, "With --metric: these heads, such as L1H2,L3H0 [all]")
      ->type_name("NAME,NAME");
  command->add_option("--layers", flags->layers, "With --metric: these layers, such as 0,4-7 [all]")->type_name("N,N");
  command->add_option("--source", flags->metric.source, "With --metric: probe or train [probe]")->type_name("NAME");
  command->add_option("--out", flags->out, "Folder for the figures [that of the run]")
      ->type_name("DIR")
      ->check(not_empty);
  command->add_option("--theme", flags->theme, "light or dark [light]")->type_name("NAME");
  command->add_flag("--per-head", flags->per_head, "Bucket heat maps of every head, too");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] {
    const Files files = plot_run(*flags);
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
