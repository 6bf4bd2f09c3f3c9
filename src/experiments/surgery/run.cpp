#include "experiments/surgery/run.h"

#include <chrono>

#include "core/atomic_file.h"
#include "core/interrupt.h"
#include "core/json_text.h"
#include "core/missing.h"
#include "experiments/surgery/measure.h"
#include "experiments/trained_model.h"
#include "formats/parquet_table.h"
#include "formats/safetensors.h"
#include "heads/figures/surgery_figures.h"
#include "ops/torch_errors.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

constexpr const char* table_name = "surgery.parquet";
constexpr const char* csv_name = "surgery.csv";
constexpr const char* summary_name = "summary.json";
constexpr const char* plots_name = "plots";

// All that an operation needs, loaded and checked.
struct SurgeryInputs {
  SurgeryOptions options;  // resolved
  ComputeDevice device;
  TrainedModel saved;
  Corpus corpus;
  std::vector<Batch> batches;
};

// An order by gains needs gains that training has set apart.
void resolve_by(SurgeryOptions& options, const TrainedModel& saved, Console& console) {
  std::vector<SurgeryBy> chosen = bys_of(options);
  const bool learned = saved.setup.model.qk_norm && saved.setup.train.qk_gain == QkGain::learned;
  if (!learned && std::erase(chosen, SurgeryBy::gain) > 0) {
    const std::string why =
        fmt::format("{}: has no learned key gains ({})", saved.checkpoint.string(),
                    saved.setup.model.qk_norm ? "train.qk_gain is fixed" : "model.qk_norm is false");
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
  inputs.saved = open_trained_model(options.checkpoint, inputs.device.device);
  options.checkpoint = inputs.saved.checkpoint.string();
  options.device = inputs.device.device.is_cpu() ? "cpu" : "cuda";
  layers_of(options, inputs.saved.setup.model.layers);
  resolve_by(options, inputs.saved, console);
  if (!options.data.empty()) {
    inputs.saved.setup.data.path = options.data;
    inputs.saved.setup.data.validation.clear();
  }
  inputs.corpus = load_held_out(inputs.saved.setup, console);
  inputs.batches = validation_batches(inputs.saved.setup.train, inputs.corpus.validation, inputs.device);
  return inputs;
}

// "tiny QK, step 150" of runs/study-tiny/QK/checkpoints/step-000150.
std::string title_of(const TrainedModel& saved) {
  const fs::path checkpoints = fs::absolute(saved.checkpoint / "").parent_path().parent_path();
  const std::string run = checkpoints.filename() == "checkpoints" ? checkpoints.parent_path().filename().string() : "";
  return fmt::format("{} {}{}step {}", saved.setup.preset, run, run.empty() ? "" : ", ", saved.moment.step);
}

ordered_json facts_of(const SurgeryInputs& inputs) {
  const TrainOptions& train = inputs.saved.setup.train;
  const fs::path weights = inputs.saved.checkpoint / "model.safetensors";
  return {
      {"definitions",
       {{"loss", "mean next-token cross-entropy over the fixed validation batches, nats"},
        {"loss_change", "loss less that of the unmodified model"},
        {"share_removed", "dimensions of each key head set to zero after QK-Norm and before RoPE, over d_k"}}},
      {"title", title_of(inputs.saved)},
      {"device", inputs.device.description},
      {"step", inputs.saved.moment.step},
      {"tokens", inputs.saved.moment.tokens},
      {"batches", {{"count", train.validation_batches}, {"sequences", train.batch}, {"seq_len", train.seq_len}}},
      {"inputs_xxh3_128",
       {{weights.string(), Safetensors(weights).hash()}, {inputs.corpus.source + ", validation", inputs.corpus.hash}}}};
}

// [{x_name: x, loss, loss_change, lowest, highest}] for each `by`.
ordered_json curves_json(const Table& rows, const char* method, const char* x_name, double unmodified) {
  ordered_json object = ordered_json::object();
  for (const SurgeryCurve& curve : surgery_curves(rows, method)) {
    ordered_json points = ordered_json::array();
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      ordered_json point = {{x_name, curve.x[i]}, {"loss", curve.loss[i]}, {"loss_change", curve.loss[i] - unmodified}};
      if (curve.repeats > 1) point.update({{"lowest", curve.lowest[i]}, {"highest", curve.highest[i]}});
      points.push_back(std::move(point));
    }
    object[curve.by] = std::move(points);
  }
  return object;
}

ordered_json summary_of(const SurgeryInputs& inputs, const SurgeryLosses& losses) {
  return {{"title", title_of(inputs.saved)},
          {"d_k", inputs.saved.setup.model.d_k},
          {"layers", layers_of(inputs.options, inputs.saved.setup.model.layers)},
          {"order", json_value(inputs.options.order)},
          {"unmodified_loss", losses.unmodified},
          {"uniform_attention_loss", losses.uniform},
          {"remove", curves_json(losses.rows, "remove", "share_removed", losses.unmodified)},
          {"quantise", curves_json(losses.rows, "quantise", "bits", losses.unmodified)}};
}

SurgeryOutcome read_outcome(const fs::path& run) {
  SurgeryOutcome outcome;
  outcome.out = run;
  outcome.losses.rows = read_parquet(run / table_name);
  outcome.summary = parse_json(read_file(run / summary_name));
  const auto number = [&](const char* key) {
    const ordered_json value =
        outcome.summary.is_object() ? outcome.summary.value(key, ordered_json("")) : ordered_json("");
    if (!value.is_number() && !value.is_null())  // null: not finite
      fail_input("{}: is damaged: it has no number '{}'", (run / summary_name).string(), key);
    return value.is_null() ? missing : value.get<double>();
  };
  for (const char* key : {"title", "order"})
    if (!outcome.summary.is_object() || !outcome.summary.value(key, ordered_json()).is_string())
      fail_input("{}: is damaged: it has no text '{}'", (run / summary_name).string(), key);
  outcome.summary["d_k"] = number("d_k");
  outcome.losses.unmodified = number("unmodified_loss");
  outcome.losses.uniform = number("uniform_attention_loss");
  return outcome;
}

std::vector<fs::path> draw_outcome(const SurgeryOutcome& outcome, const fs::path& out, const std::string& theme) {
  const SurgeryLosses& losses = outcome.losses;
  const SurgeryFigureData data{text_at(outcome.summary, "title"), losses.rows, losses.unmodified, losses.uniform};
  return draw(surgery_figures(data), out / plots_name, theme_named(theme)).files;
}

SurgeryOutcome measure_in_folder(const SurgeryJob& job, const SurgeryInputs& inputs, RunFolder& folder,
                                 Clock::time_point start, Console& console) {
  SurgeryOutcome outcome;
  outcome.out = folder.path();
  outcome.losses = measure_surgery(inputs.saved.model, inputs.batches, inputs.device.type, inputs.options, console);
  outcome.summary = summary_of(inputs, outcome.losses);
  folder.write(table_name, to_parquet(outcome.losses.rows));
  folder.write(csv_name, to_csv(outcome.losses.rows));
  folder.write(summary_name, json_text(outcome.summary));
  draw_or_warn(outcome.out, console, [&] { draw_outcome(outcome, folder.place(), job.theme); });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  folder.finish(RunStatus::complete, {{"seconds", seconds}});
  return outcome;
}

}  // namespace

SurgeryOutcome run_surgery(const SurgeryJob& job, Console& console) {
  const auto start = Clock::now();
  const InterruptGuard guard;
  validate(job.options);
  theme_named(job.theme);  // an unknown name is refused before the work, not after it
  const SurgeryInputs inputs = with_short_torch_errors([&] { return open_inputs(job.options, console); });
  RunFolder folder(job.folder, {surgery_command, job.command_line, to_json(inputs.options), facts_of(inputs)});
  if (folder.already_complete()) return read_outcome(folder.path());
  return folder.live(
      [&] { return with_short_torch_errors([&] { return measure_in_folder(job, inputs, folder, start, console); }); });
}

std::vector<fs::path> draw_surgery_run(const fs::path& run, const fs::path& out, const std::string& theme) {
  theme_named(theme);  // an unknown name is refused before anything is read
  return draw_outcome(read_outcome(run), out, theme);
}

}  // namespace headscope
