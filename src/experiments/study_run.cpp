#include "experiments/study_run.h"

#include <map>

#include "core/interrupt.h"
#include "experiments/estimate.h"
#include "figures/draw_or_warn.h"
#include "figures/theme.h"
#include "formats/parquet_table.h"
#include "ops/device.h"
#include "run/absolute_folder.h"
#include "study/figure_data.h"
#include "train/loop.h"
#include "train/torch_errors.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

// [layer][probe] of a metric.
std::vector<Numbers> by_layer(const Table& layers, std::string_view metric, std::int64_t n_layers) {
  std::vector<Numbers> values(static_cast<std::size_t>(n_layers));
  const Numbers value = layers.numbers("value");
  for (std::size_t row = 0; row < layers.rows(); ++row)
    if (layers.texts("metric")[row] == metric && layers.texts("source")[row] == "probe")
      values[static_cast<std::size_t>(layers.integers("layer")[row])].push_back(value[row]);
  if (values.front().empty()) values.clear();
  return values;
}

// The tables of a training as the results of a condition. They are read from the folder: a training that was resumed
// has only its last rows in memory.
ConditionResults results_of(const fs::path& folder, const Condition& condition, std::int64_t n_layers) {
  const Table probes = read_parquet(folder / "probes.parquet"), layers = read_parquet(folder / "layers.parquet");
  ConditionResults results;
  results.tag = condition.tag;
  results.tokens = probes.integers("tokens");
  results.loss = probes.numbers("loss");
  results.val_loss = probes.numbers("val_loss");
  results.mean_pr = probes.numbers("k_pr");
  results.layer_pr = by_layer(layers, "k_pr", n_layers);
  results.gamma_cv = by_layer(layers, "gamma_cv", n_layers);
  if (condition.gain_learned) {
    const Table gains = read_parquet(folder / "gamma.parquet");
    results.gamma_final.emplace(static_cast<std::size_t>(n_layers));
    for (std::size_t row = 0; row < gains.rows(); ++row)
      if (gains.texts("kind")[row] == "k")  // later rows replace earlier ones: the last remain
        (*results.gamma_final)[static_cast<std::size_t>(gains.integers("layer")[row])] = gains.vectors("vector")[row];
  }
  return results;
}

TrainJob train_job(const StudyJob& job, std::uint64_t seed, const Condition& condition, const fs::path& place,
                   const RunFolder& folder) {
  TrainJob train;
  train.folder = place;
  train.label = fmt::format("{} {}", condition.letter, condition.tag);
  if (seeds_of(job.options).size() > 1) train.label += fmt::format(" seed {}", seed);
  train.resume_hint = fmt::format("go on with --resume --out {}", job.folder.out.string());
  train.model = job.options.model;
  train.model.qk_norm = condition.gain_learned ? QkNorm::learned : condition.normalised ? QkNorm::frozen : QkNorm::none;
  train.options = job.options.train;
  train.track = job.options.track;
  train.seed = seed;
  train.config = to_json(job.options);
  train.config["model"]["qk_norm"] = json_value(train.model.qk_norm);
  train.before_writing = [&folder] { folder.check_in_place(); };
  train.config["condition"] = {{"tag", condition.tag}, {"seed", seed}};
  return train;
}

// The results of an earlier start of this run.
ConditionResults results_before(const fs::path& file, const Condition& condition, std::int64_t n_layers) {
  ConditionResults results = read_results(file, condition.tag);
  if (static_cast<std::int64_t>(results.layer_pr.size()) != n_layers)
    fail_input("{}: has {} layers; the model of this study has {}", file.string(), results.layer_pr.size(), n_layers);
  return results;
}

// Trains the conditions that have no results yet. Returns all of them, in order of the seeds.
Study train_study(const StudyJob& job, const RunFolder& folder, const Corpus& corpus, const ComputeDevice& device,
                  double& tokens_per_s, Console& console) {
  const auto seeds = seeds_of(job.options);
  const std::int64_t n_layers = job.options.model.layers;
  std::map<std::uint64_t, SeedRuns> by_seed;
  for (const std::uint64_t seed : seeds)
    for (const std::size_t i : conditions_of(job.options)) {
      const fs::path seed_place = seeds.size() == 1 ? "" : fmt::format("seed_{}", seed);
      const fs::path place = folder.path() / seed_place / condition_tags[i];
      by_seed[seed].name = absolute_folder(folder.path() / seed_place).filename().string();
      std::optional<ConditionResults>& results = by_seed[seed].conditions[i];
      if (fs::exists(place / results_name)) {
        results = results_before(place / results_name, study_conditions[i], n_layers);
        continue;
      }
      folder.check_in_place();
      fs::create_directories(place);
      tokens_per_s =
          train(train_job(job, seed, study_conditions[i], place, folder), corpus, device, console).tokens_per_s;
      results = results_of(place, study_conditions[i], n_layers);
      write_results(*results, folder, seed_place);
    }
  Study study;
  for (auto& [seed, runs] : by_seed) study.seeds.push_back(std::move(runs));
  return study;
}

ordered_json facts_of(const StudyJob& job, const ComputeDevice& device) {
  return {{"definitions", study_definitions()},
          {"device", device.description},
          {"threads", device.threads},
          {"parameters", count_parameters(job.options.model).total},
          {"seeds", seeds_of(job.options)}};
}

// The whole configuration, with nothing left to be chosen.
StudyOptions resolved(StudyOptions options, const ComputeDevice& device) {
  options.device = device.device.is_cpu() ? "cpu" : "cuda";
  return options;
}

StudyOutcome run_in_folder(const StudyJob& job, const Corpus& corpus, const ComputeDevice& device, RunFolder& folder,
                           Clock::time_point start, Console& console) {
  StudyOutcome outcome;
  outcome.device = device.description;
  outcome.unigram_entropy = corpus.unigram_entropy;
  outcome.true_entropy = corpus.true_entropy;
  outcome.out = folder.path();
  Study study = folder.already_complete() ? load_study({folder.path()})
                                          : train_study(job, folder, corpus, device, outcome.tokens_per_s, console);
  study.title = job.options.preset;
  outcome.result = analyze(study, job.options.tau);
  for (const std::string& warning : outcome.result.warnings) console.warn(warning);
  if (folder.already_complete()) return outcome;
  folder.check_in_place();
  draw_or_warn(folder.path(), console, [&] {
    draw_study_figures(figure_data(study, outcome.result.tokens), folder.path(), theme_named(job.theme));
  });
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  write_combined(study, outcome.result, outcome.seconds, folder);
  folder.finish(RunStatus::complete, {{"verdict", to_json(outcome.result.verdict)},
                                      {"seconds", outcome.seconds},
                                      {"tokens_per_s", outcome.tokens_per_s},
                                      {"inputs_xxh3_128", {{corpus.source, corpus.hash}}}});
  return outcome;
}

}  // namespace

StudyOutcome run_study(const StudyJob& given, Console& console) {
  const auto start = Clock::now();
  const InterruptGuard guard;
  validate(given.options);
  theme_named(given.theme);  // an unknown name is refused before the work, not after it
  const ComputeDevice device = choose_device(given.options.device, given.options.threads);
  StudyJob job = given;
  job.options = resolved(given.options, device);
  check_out(job.folder, study_command, RunWrites::as_it_goes);
  check_memory(job.options.model, device);
  const Corpus corpus = load_corpus_for(job.options, console);  // before the folder: bad data leaves nothing behind
  RunFolder folder(job.folder, {.command = study_command,
                                .command_line = job.command_line,
                                .config = to_json(job.options),
                                .facts = facts_of(job, device),
                                .writes = RunWrites::as_it_goes,
                                .free_keys = {"threads"},
                                .inputs = inputs_of(job.options.data)});
  return folder.live([&] {
    return with_short_torch_errors([&] { return run_in_folder(job, corpus, device, folder, start, console); });
  });
}

}  // namespace headscope
