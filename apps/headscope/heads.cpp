#include "command.h"
#include "heads/ranking.h"

namespace headscope {

void add_heads(CLI::App& app, CommonFlags& common, Command& chosen) {
  struct Flags {
    std::filesystem::path run;
    RankingOptions options;
  };
  auto flags = std::make_shared<Flags>();
  RankingOptions& options = flags->options;
  auto* command = app.add_subcommand("heads", "Rank the heads of a run by a measurement, or by how much they changed");
  command->add_option("run", flags->run, "A run of train or inspect, or a condition of a study")
      ->required()
      ->type_name("RUN");
  command->add_option("--by", options.by, "A metric (docs/measurements.md), or change [change]")->type_name("METRIC");
  command->add_flag("--lowest", options.lowest, "Those with least of it first");
  add_number_flag(*command, "--top", options.top, "N", "Heads to list [10]");
  add_number_flag(*command, "--step", options.step, "N", "As measured at this step, or last before it [the last]");
  add_number_flag(*command, "--layer", options.layer, "N", "Heads of this layer alone");
  command->add_option("--source", options.source, "probe (fixed batch) or train (training batches) [probe]")
      ->type_name("NAME");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] {
    const Ranking ranking = rank_heads(read_tracks(flags->run), read_batch_shape(flags->run), flags->options);
    if (common.json)
      fmt::print("{}", json_text(to_json(ranking)));
    else
      fmt::print("{}", to_terminal(ranking));
    return 0;
  });
}

}  // namespace headscope
