#include "experiments/study_run.h"

#include "core/interrupt.h"
#include "experiments/estimate.h"
#include "experiments/train_with_progress.h"
#include "figures/draw_or_warn.h"
#include "figures/theme.h"
#include "heads/gain.h"
#include "ops/device.h"
#include "ops/torch_errors.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using nlohmann::ordered_json;

// What a condition is to the model and to training.
struct ConditionSetting {
  bool normalised, gain_learned;
};
constexpr std::array<ConditionSetting, n_conditions> condition_settings = {
    {{true, true}, {true, false}, {false, false}}};

// One condition of one seed.
struct Condition {
  std::uint64_t seed = 0;
  std::size_t index = 0;
  fs::path folder;
};

std::vector<Condition> conditions_to_train(const StudyOptions& options, const fs::path& out) {
  const auto seeds = seeds_of(options);
  std::vector<Condition> conditions;
  for (const std::uint64_t seed : seeds)
    for (const std::size_t index : conditions_of(options)) {
      const fs::path place = seeds.size() == 1 ? out : out / fmt::format("seed_{}", seed);
      conditions.push_back({seed, index, place / condition_tags[index]});
    }
  return conditions;
}

// What training measured, as results.json has it.
ConditionResults results_of(const TrainResult& trained, std::size_t index) {
  const Tracks& probes = trained.tracks.probe;
  ConditionResults results;
  results.tag = condition_tags[index];
  for (const ProbeLosses& losses : trained.losses) {
    results.tokens.push_back(losses.moment.tokens);
    results.loss.push_back(losses.train);
    results.val_loss.push_back(losses.validation);
  }
  for (std::int64_t layer = 0; layer < probes.counts.layers; ++layer)
    results.layer_pr.push_back(probes.of_layer("k_pr", layer));
  for (std::size_t probe = 0; probe < probes.moments.size(); ++probe) {
    double sum = 0;
    for (const Numbers& layer : results.layer_pr) sum += layer[probe];
    results.mean_pr.push_back(sum / static_cast<double>(results.layer_pr.size()));
  }
  if (trained.tracks.gains.empty()) return results;
  results.gamma_cv.resize(results.layer_pr.size());
  std::vector<Numbers> last(results.layer_pr.size());
  for (const LayerGains& gains : trained.tracks.gains) {
    results.gamma_cv[static_cast<std::size_t>(gains.layer)].push_back(coefficient_of_variation(gains.k));
    last[static_cast<std::size_t>(gains.layer)] = gains.k;
  }
  if (condition_settings[index].gain_learned) results.gamma_final = std::move(last);
  return results;
}

TrainJob train_job(const StudyJob& job, const Condition& condition) {
  TrainJob train;
  train.folder = condition.folder;
  train.label = fmt::format("{} {}", condition_letters[condition.index], condition_tags[condition.index]);
  if (seeds_of(job.options).size() > 1) train.label += fmt::format(" seed {}", condition.seed);
  train.resume_hint = fmt::format("go on with --resume --out {}", job.folder.out.string());
  train.model = job.options.model;
  train.model.qk_norm = condition_settings[condition.index].normalised;
  train.options = job.options.train;
  train.options.qk_gain = condition_settings[condition.index].gain_learned ? QkGain::learned : QkGain::fixed;
  train.keep_moments = std::numeric_limits<std::size_t>::max();  // results.json has every probe
  train.track = job.options.track;
  train.seed = condition.seed;
  train.config = to_json(job.options);
  train.config["model"]["qk_norm"] = train.model.qk_norm;
  train.config["train"]["qk_gain"] = json_value(train.options.qk_gain);
  train.config["condition"] = {{"tag", condition_tags[condition.index]}, {"seed", condition.seed}};
  return train;
}

// Trains what is not trained yet; a condition that has its results is done.
double train_conditions(const StudyJob& job, const RunFolder& folder, const Corpus& corpus, const ComputeDevice& device,
                        Console& console) {
  double tokens_per_s = 0;
  for (const Condition& condition : conditions_to_train(job.options, folder.path())) {
    if (fs::exists(condition.folder / results_name)) continue;
    folder.check_in_place();
    fs::create_directories(condition.folder);
    const TrainResult trained = train_with_progress(train_job(job, condition), corpus, device, folder, console);
    tokens_per_s = trained.tokens_per_s;
    const ConditionResults results = results_of(trained, condition.index);
    folder.write(fs::relative(condition.folder, folder.path()) / results_name, to_results_text(results));
  }
  return tokens_per_s;
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
  if (!folder.already_complete()) outcome.tokens_per_s = train_conditions(job, folder, corpus, device, console);
  Study study = load_study({folder.path()});
  study.title = job.options.preset;
  outcome.verdict = judge_study(study, folder.path(), job.options.tau, console);
  if (folder.already_complete()) return outcome;
  folder.check_in_place();
  draw_or_warn(folder.path(), console, [&] { draw_study(study, folder.path(), job.theme); });
  outcome.verdict.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  write_combined(study, outcome.verdict, folder);
  folder.finish(RunStatus::complete, {{"verdict", to_json(outcome.verdict.verdict)},
                                      {"seconds", outcome.verdict.seconds},
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
