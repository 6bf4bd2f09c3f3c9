#include "experiments/surgery/run.h"

#include "core/interrupt.h"
#include "experiments/device_facts.h"
#include "experiments/surgery/operations.h"
#include "figures/theme.h"
#include "formats/model_files.h"
#include "formats/safetensors.h"
#include "model/checkpoint_files.h"
#include "model/load.h"
#include "ops/device.h"
#include "ops/large_tensors.h"
#include "ops/torch_errors.h"
#include "probe/probe.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// All that an operation needs, loaded and checked.
struct SurgeryInputs {
  SurgeryOptions options;  // resolved
  ComputeDevice device;
  LoadedModel saved;
  Corpus corpus;
  std::vector<Batch> batches;
};

// Why an order by gains makes no sense: it needs gains that training has set apart. Empty where it does.
std::string without_order_by_gain(const Setup& setup) {
  if (!setup.model.qk_norm) return "has no learned key gains (model.qk_norm is false)";
  if (setup.train.qk_gain == QkGain::fixed) return "has no learned key gains (train.qk_gain is fixed)";
  if (setup.model.qk_gain == QkGainShape::scalar)
    return "has one key gain for all dimensions of a layer (model.qk_gain is scalar)";
  return "";
}

void resolve_by(SurgeryOptions& options, const LoadedModel& saved, Console& console) {
  std::vector<SurgeryBy> chosen = bys_of(options);
  const std::string reason = without_order_by_gain(saved.setup);
  if (!reason.empty() && std::erase(chosen, SurgeryBy::gain) > 0) {
    const std::string why = fmt::format("{}: {}", saved.checkpoint.string(), reason);
    if (!options.by.empty()) fail_input("{}; --by {}: leave out gain", why, options.by);
    console.info(fmt::format("{}: nothing is removed by gain", why));
  }
  std::vector<std::string_view> names;
  for (const SurgeryBy by : chosen) names.push_back(EnumNames<SurgeryBy>::names[static_cast<std::size_t>(by)]);
  options.by = fmt::format("{}", fmt::join(names, ","));
}

SurgeryInputs open_inputs(const SurgeryOptions& given, Console& console) {
  SurgeryInputs inputs{given, choose_device(given.device), {}, {}, {}};
  SurgeryOptions& options = inputs.options;
  inputs.saved = load_model(options.checkpoint, inputs.device.device);
  options.checkpoint = absolute_folder(inputs.saved.checkpoint).string();  // found from anywhere
  options.device = inputs.device.name();
  layers_of(options, inputs.saved.setup.model.layers);
  resolve_by(options, inputs.saved, console);
  if (!options.data.empty()) {
    inputs.saved.setup.data.path = options.data;
    inputs.saved.setup.data.validation.clear();
  }
  hold_out_all(inputs.saved, /*tokenizer_given=*/false);
  for (const std::string& warning : inputs.saved.warnings) console.warn(warning);
  inputs.corpus = load_held_out(inputs.saved.setup, console);
  inputs.batches = validation_batches(inputs.saved.setup.train, inputs.corpus, inputs.device);
  return inputs;
}

ordered_json facts_of(const SurgeryInputs& inputs) {
  const TrainOptions& train = inputs.saved.setup.train;
  const fs::path& checkpoint = inputs.saved.checkpoint;
  const bool ours = inputs.saved.architecture.empty();
  const fs::path weights = ours ? checkpoint / model_name : checkpoint;
  ordered_json facts = device_facts(inputs.device);
  facts.update(
      {{"definitions",
        {{"loss", "mean next-token cross-entropy over the fixed validation batches, nats"},
         {"loss_change", "loss less that of the unmodified model"},
         {"share_removed", "dimensions of each key head set to zero after QK-Norm and before RoPE, over d_k"}}},
       {"title", title_of(inputs.saved)},
       {"step", inputs.saved.step},
       {"tokens", inputs.saved.tokens},
       {"batches", {{"count", train.validation_batches}, {"sequences", train.batch}, {"seq_len", train.seq_len}}},
       {"inputs_xxh3_128",
        {{weights.string(), ours ? Safetensors(weights).hash() : ModelFiles(checkpoint).weights_hash()},
         {inputs.corpus.source + ", validation", inputs.corpus.hash}}}});
  return facts;
}

}  // namespace

SurgeryOutcome run_surgery(const SurgeryJob& job, Console& console) {
  const auto start = Clock::now();
  const InterruptGuard guard;
  const LargeTensors memory;
  validate(job.options);
  theme_named(job.theme);  // an unknown name is refused before the work, not after it
  const SurgeryInputs inputs = open_inputs(job.options, console);
  const DecoderConfig& model = inputs.saved.setup.model;
  RunFolder folder(job.folder, {surgery_command, to_json(inputs.options), facts_of(inputs)});
  SurgeryOutcome outcome;
  outcome.out = folder.path();
  outcome.title = title_of(inputs.saved);
  outcome.d_k = model.d_k;
  outcome.layers = layers_of(inputs.options, model.layers);
  outcome.order = inputs.options.order;
  if (folder.already_complete()) {
    outcome.losses = read_losses_of_surgery(folder.path());
    return outcome;
  }
  const auto stop_if_asked = [&] {
    if (interrupt_requested())
      throw Error(Fault::interrupted, "interrupted; " + resume_hint(surgery_command, folder.path()));
  };
  return folder.live([&] {
    outcome.losses = with_short_torch_errors([&] {
      return measure_surgery(inputs.saved.model, inputs.batches, inputs.device.type, inputs.options, console,
                             stop_if_asked);
    });
    write_outcome(outcome, folder, job.theme, console);
    folder.finish(RunStatus::complete, {{"seconds", seconds_since(start)}});
    return outcome;
  });
}

}  // namespace headscope
