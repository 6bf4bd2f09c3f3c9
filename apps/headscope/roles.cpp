#include "command.h"
#include "heads/roles/run.h"
#include "torch_half.h"

namespace headscope {
namespace {

int roles_command_line(const RolesJob& given, const CommonFlags& common) {
  Console console(common.console);
  RolesJob job = given;
  if (!is_tracked_run(job.place) || !job.folder.out.empty()) choose_out(job.folder, common, "roles");
  const RolesOutcome outcome = find_roles(job, [&](const InspectJob& inspection, const WriteMore& write_more) {
    return torch_half().inspect(inspection, console, write_more);
  });
  if (common.json) {
    nlohmann::ordered_json object = {{"out", outcome.out.string()}};
    object.update(to_json(outcome.roles));
    fmt::print("{}", json_text(object));
  } else if (!common.console.quiet) {
    fmt::print("{}\nroles.parquet, role_timeline.parquet, role_transitions.parquet and plots/role_map.png: {}\n",
               to_terminal(outcome.roles), visible(outcome.out));
  }
  return 0;
}

}  // namespace

void add_roles(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto job = std::make_shared<RolesJob>();
  auto* command = app.add_subcommand(
      "roles", "Sort heads into roles: of a run, over its training, or of a checkpoint or published model");
  command->add_option("place", job->place, "A run of train or inspect, a checkpoint, or a published model")
      ->required()
      ->type_name("RUN");
  command
      ->add_option("--definition", job->definition, "YAML with the scores that make a role (docs/roles.md) [seeds-1]")
      ->type_name("FILE");
  command->add_option("--source", job->source, "Of a run: probe (fixed batch) or train (training batches) [probe]")
      ->type_name("NAME");
  add_number_flag(*command, "--step", job->step, "N",
                  "Of a run: as measured at this step, or last before it [the last]");
  add_key_flag(*command, job->changes, "--data", "data.path", "PATH", "Of a checkpoint: data to measure on");
  add_key_flag(*command, job->changes, "--tokenizer", "data.tokenizer", "PATH",
               "Of a checkpoint: of that text [its own]");
  add_key_flag(*command, job->changes, "--batch", "train.batch", "N",
               "Of a checkpoint: sequences [as in training; 16]");
  add_key_flag(*command, job->changes, "--seq-len", "train.seq_len", "N",
               "Of a checkpoint: tokens of a sequence [as in training; 256]");
  command->add_option("--device", job->device, "Of a checkpoint: auto, cpu or cuda (cuda:1: the second GPU) [auto]")
      ->type_name("NAME");
  command->add_option("--theme", job->theme, "Figures: light or dark [light]")->type_name("NAME");
  command->add_option("--out", job->folder.out, "Folder for the results [of a run: the run itself; docs/roles.md]")
      ->type_name("DIR")
      ->check(not_empty);
  command->add_flag("--overwrite", job->folder.overwrite,
                    "Replace the run that is in --out, or the roles of another definition with the same id");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [job, &common] { return roles_command_line(*job, common); });
}

}  // namespace headscope
