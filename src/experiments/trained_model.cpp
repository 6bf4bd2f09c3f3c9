#include "experiments/trained_model.h"

#include "model/checkpoint_files.h"

namespace headscope {
namespace {

// The setup in the configuration of a run, which may hold more.
Setup setup_of(const LoadedModel& loaded) {
  Setup setup;
  std::vector<std::string> known = field_names(setup);
  std::erase(known, "threads");  // of the machine that trained it
  for (const ConfigEntry& entry : entries_of(loaded.config, (loaded.checkpoint / state_name).string()))
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) apply(setup, entry);
  validate(setup);
  return setup;
}

}  // namespace

TrainedModel open_trained_model(const std::filesystem::path& place, at::Device device) {
  LoadedModel loaded = load_model(place, device);
  const Setup setup = setup_of(loaded);
  if (loaded.step > setup.train.steps())
    fail_damaged(loaded.checkpoint / state_name,
                 fmt::format("'step' is not a whole number from 0 to {}", setup.train.steps()));
  return {loaded.checkpoint, loaded.model, setup, {loaded.step, loaded.step * setup.train.tokens_per_step()}};
}

std::vector<Batch> validation_batches(const TrainOptions& options, const Tokens& tokens, const ComputeDevice& device) {
  return fixed_batches(tokens, options.validation_batches, {options.batch, options.seq_len}, device);
}

}  // namespace headscope
