#include "experiments/inspect.h"

#include "core/interrupt.h"
#include "core/missing.h"
#include "heads/run_tables.h"
#include "model/load.h"
#include "ops/device.h"
#include "ops/torch_errors.h"
#include "probe/probe.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

// The setup with other data or batches. Other text stands for itself: what training held out beside its own text does
// not belong to it.
void change(Setup& setup, const std::vector<ConfigEntry>& changes) {
  if (std::ranges::find(changes, "data.path", &ConfigEntry::key) != changes.end()) setup.data.validation.clear();
  for (const ConfigEntry& entry : changes) {
    if (std::ranges::find(changeable_keys, entry.key) == changeable_keys.end())
      fail_input("{}: '{}' belongs to the checkpoint; what can be changed is {}", entry.where, entry.key,
                 fmt::join(changeable_keys, ", "));
    apply(setup, entry);
  }
  validate(setup.train);
  validate(setup.data);
}

// The configuration in the manifest: what was measured, on what.
ordered_json config_of(const InspectOptions& options, const LoadedModel& saved) {
  ordered_json config = to_json(saved.setup);
  config["track"] = {{"metrics", options.metrics}};
  if (!saved.architecture.empty()) config["architecture"] = saved.architecture;
  config["checkpoint"] = absolute_folder(saved.checkpoint).string();  // found from anywhere
  return config;
}

// Writes the tables of one moment; returns its tracks.
RunTracks write_tables(const ProbeResult& result, const Moment& moment, const std::filesystem::path& place) {
  const Measured now{moment, "probe"};
  RunTables tables(place, {.probe = 1});
  tables.add_probe({moment, missing, *result.val_loss}, result.layers);
  tables.add_heads(now, result.layers);
  tables.add_gains(now, result.gains, /*with_vectors=*/true);
  tables.flush();
  tables.merge();
  return tables.tracks();
}

}  // namespace

Inspection inspect(const InspectJob& job, Console& console, const WriteMore& write_more) {
  const InterruptGuard guard;
  const MetricSelection chosen(job.options.metrics, "--track");
  const ComputeDevice device = choose_device(job.options.device);
  LoadedModel saved = load_model(job.options.checkpoint, device.device);
  for (const std::string& warning : saved.warnings) console.warn(warning);
  change(saved.setup, job.options.changes);
  hold_out_all(saved);
  const Corpus corpus = load_held_out(saved.setup, console);
  Inspection inspection{.checkpoint = saved.checkpoint.string(),
                        .architecture = saved.architecture,
                        .moment = {saved.step, saved.tokens},
                        .device = device.description,
                        .source = corpus.source};
  RunFolder folder(
      job.folder,
      {inspect_command,
       config_of(job.options, saved),
       {{"title", title_of(saved)}, {"device", device.description}, {"step", saved.step}, {"tokens", saved.tokens}}});
  const RunFacts facts{title_of(saved), saved.setup.model.d_k};
  if (folder.already_complete()) {
    inspection.tracks = read_tracks(folder.path());
    inspection.summary = summarise(inspection.tracks, facts);
    inspection.val_loss = read_manifest(folder.path()).value("val_loss", missing);
    return inspection;
  }
  return folder.live([&] {
    const ProbeResult result = with_short_torch_errors([&] {
      const auto batches = validation_batches(saved.setup.train, corpus.validation, device);
      return probe_model(saved.model, batches, device.type, chosen, /*with_loss=*/true);
    });
    if (interrupt_requested())
      throw Error(Fault::interrupted, "interrupted; " + resume_hint(inspect_command, folder.path()));
    inspection.tracks = write_tables(result, inspection.moment, folder.place());
    inspection.val_loss = *result.val_loss;
    inspection.summary = summarise(inspection.tracks, facts);
    write_summary(inspection.summary, facts, folder.place());
    if (write_more) write_more(inspection, facts, folder.place());
    folder.finish(RunStatus::complete,
                  {{"val_loss", *result.val_loss}, {"inputs_xxh3_128", {{corpus.source, corpus.hash}}}});
    return inspection;
  });
}

}  // namespace headscope
