#include "inspect/inspect.h"

#include "core/interrupt.h"
#include "train/checkpoint.h"
#include "train/run_guard.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr std::array<std::string_view, 8> changeable = {
    "data.path",          "data.validation", "data.validation_share", "data.text_column",
    "data.language_seed", "train.batch",     "train.seq_len",         "train.validation_batches"};

// The setup with other data or batches. The model keeps its shape; longer sequences only need more positions. Other
// text stands for itself: what training held out beside its own text does not belong to it.
void change(Setup& setup, const std::vector<ConfigEntry>& changes) {
  if (std::ranges::find(changes, "data.path", &ConfigEntry::key) != changes.end()) setup.data.validation.clear();
  for (const ConfigEntry& entry : changes) {
    if (std::find(changeable.begin(), changeable.end(), entry.key) == changeable.end())
      fail_input("{}: '{}' belongs to the checkpoint; what can be changed is {}", entry.where, entry.key,
                 fmt::join(changeable, ", "));
    apply(setup, entry);
  }
  validate(setup.train);
  validate(setup.data);
}

// The configuration in the manifest: what was measured, on what.
ordered_json config_of(const InspectOptions& options, const SavedModel& saved) {
  ordered_json config = to_json(saved.setup);
  config["model"]["qk_norm"] = json_value(saved.setup.model.qk_norm);
  config["track"] = {{"metrics", options.metrics}};
  config["checkpoint"] = saved.checkpoint.string();
  return config;
}

}  // namespace

Inspection inspect(const InspectJob& job, Console& console) {
  const InterruptGuard guard;
  const MetricSelection chosen(job.options.metrics, "--track");
  const ComputeDevice device = choose_device(job.options.device);
  SavedModel saved = open_checkpoint(job.options.checkpoint, device.device);
  change(saved.setup, job.options.changes);
  if (saved.setup.train.seq_len > saved.model.config.positions) {
    saved.setup.model.positions = saved.setup.train.seq_len;
    saved.model = with_positions(saved.model, saved.setup.train.seq_len);
  }
  const Corpus corpus = load_held_out(saved.setup, console);
  RunFolder folder(job.folder, {inspect_command,
                                job.command_line,
                                config_of(job.options, saved),
                                {{"device", device.description}, {"step", saved.step}, {"tokens", saved.tokens}}});
  return in_run_folder(folder, [&] {
    const auto batches = validation_batches(saved.setup.train, corpus.validation, device);
    const ProbeResult result = probe_model(saved.model, batches, device.type, chosen, /*with_loss=*/true);
    const Measured now{{saved.step, saved.tokens}, "probe"};
    TrainTables tables(folder.path(), {});
    tables.add_probe(now.moment, std::nan(""), *result.val_loss, result.layers);
    tables.add_heads(now, result.layers);
    tables.add_gains(now, result.gains, /*with_vectors=*/true);
    tables.flush();
    tables.merge();
    Inspection inspection{
        saved.checkpoint.string(), saved.setup,  read_tracks(folder.path()), *result.val_loss, now.moment,
        device.description,        corpus.source};
    const RunFacts facts = facts_of_run(folder.path());
    write_summary(inspection.tracks, facts, folder.path());
    if (has_roles(inspection.tracks))
      write_roles(inspection.tracks, facts, default_role_definition(), /*from_training=*/false, folder.path());
    folder.finish(RunStatus::complete,
                  {{"val_loss", *result.val_loss}, {"inputs_xxh3_128", {{corpus.source, corpus.hash}}}});
    return inspection;
  });
}

}  // namespace headscope
