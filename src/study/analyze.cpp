#include "study/analyze.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <span>

#include "core/console.h"
#include "core/interrupt.h"
#include "core/json_text.h"
#include "core/missing.h"
#include "core/text.h"
#include "study/own_conditions.h"
#include "study/study_figures.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
using nlohmann::literals::operator""_json_pointer;
namespace fs = std::filesystem;

// Runs of two seeds with the same values: "QK of seed_2 and seed_1".
std::vector<std::string> repeated_runs(const Study& study) {
  std::vector<std::string> found;
  for (const Condition& condition : conditions_of(study)) {
    std::map<std::string, std::string> seeds;  // by what was measured
    for (const SeedRuns& seed : study.seeds) {
      const ConditionResults* run = seed.find(condition.tag);
      if (run == nullptr || has_diverged(*run)) continue;
      const ordered_json measured = {run->tokens, run->loss, run->val_loss, run->mean_pr, run->layer_pr};
      const auto [first, is_new] = seeds.emplace(measured.dump(), seed.name);  // NaN becomes null
      if (!is_new) found.push_back(fmt::format("{} of {} and {}", condition.tag, seed.name, first->second));
    }
  }
  return found;
}

std::vector<std::string> warnings_of(const Study& study, const StudyResult& result) {
  std::vector<std::string> warnings = study.warnings;
  std::int64_t longest = 0;
  for (const SeedRuns& seed : study.seeds) {
    for (const ConditionValues& values : result.verdict.conditions)
      if (is_main(values.condition.tag) && seed.find(values.condition.tag) == nullptr)
        warnings.push_back(
            fmt::format("{}: condition {} ({}) is missing", seed.name, values.condition.letter, values.condition.tag));
    for (const auto& [tag, run] : seed.runs) longest = std::max(longest, run.tokens.back());
  }
  for (const auto& [seed, tag, tokens] : result.diverged)
    warnings.push_back(fmt::format("{}: {} diverged after {} and is left out", seed, tag, tokens_text(tokens)));
  if (const auto repeated = repeated_runs(study); !repeated.empty())
    warnings.push_back(fmt::format("runs with the same values: {}; they are not independent, and tests are too sure",
                                   excerpt(fmt::format("{}", fmt::join(repeated, ", ")))));
  if (longest > result.tokens)
    warnings.push_back(
        fmt::format("runs end at different numbers of tokens; compared after {}, the last probe that all have",
                    tokens_text(result.tokens)));
  return warnings;
}

// Runs that diverged, and those without a value where conditions are compared.
std::vector<DivergedRun> diverged_runs(const Study& study, std::int64_t tokens) {
  std::vector<DivergedRun> found;
  for (const SeedRuns& seed : study.seeds)
    for (const auto& [tag, run] : seed.runs) {
      const auto probe = probe_at(run, tokens);
      if (!has_diverged(run) && probe && std::isfinite(run.mean_pr[*probe])) continue;
      found.push_back({seed.name, tag, last_sound_tokens(run)});
    }
  return found;
}

// What read(run) gives for the run of each seed; NaN where there is none or it diverged.
template <class Read>
std::vector<double> over_seeds(const Study& study, const std::string& tag, Read read) {
  std::vector<double> values;
  for (const SeedRuns& seed : study.seeds) {
    const ConditionResults* run = seed.find(tag);
    values.push_back(run != nullptr && !has_diverged(*run) ? read(*run) : missing);
  }
  return values;
}

// Null where the run does not have it.
const Numbers* series_of(const ConditionResults& run, const std::string& measure) {
  if (measure == main_measure) return &run.mean_pr;
  const auto found = run.measures.find(measure);
  return found == run.measures.end() ? nullptr : &found->second.mean;
}

// The verdict of the mean over these probes. All runs that did not diverge have the measure.
Verdict verdict_at(const Study& study, std::span<const std::int64_t> probes, double tau,
                   const std::string& measure = std::string(main_measure)) {
  std::vector<ConditionValues> conditions;
  for (const Condition& condition : conditions_of(study)) {
    const auto end = [&](const ConditionResults& run) {
      double sum = 0;
      for (const std::int64_t at : probes) sum += (*series_of(run, measure))[*probe_at(run, at)];
      return sum / static_cast<double>(probes.size());
    };
    const auto start = [&](const ConditionResults& run) { return series_of(run, measure)->front(); };
    conditions.push_back({condition, over_seeds(study, condition.tag, end), over_seeds(study, condition.tag, start),
                          runs_of(study, condition.tag).size()});
  }
  return decide(std::move(conditions), tau);
}

// The mean over the runs that did not diverge of the measure at the first probe; NaN where one of them lacks it.
double start_of(const Study& study, const std::string& measure) {
  double sum = 0, runs = 0;
  for (const SeedRuns& seed : study.seeds)
    for (const auto& [tag, run] : seed.runs) {
      if (has_diverged(run)) continue;
      const Numbers* series = series_of(run, measure);
      sum += series == nullptr ? missing : series->front();
      ++runs;
    }
  return sum / runs;
}

std::vector<MeasureVerdict> measure_verdicts(const Study& study, std::int64_t tokens, const Verdict& main) {
  std::vector<MeasureVerdict> verdicts;
  const double main_start = start_of(study, std::string(main_measure));
  for (const FurtherSeries& series : further_series) {
    if (!series.is_rank) continue;
    const std::string name(series.name);
    MeasureVerdict one{.name = name, .start = start_of(study, name), .verdict = {}};
    const double tau = main.tau * one.start / main_start;
    if (!(tau > 0) || std::isinf(tau)) continue;
    one.verdict = verdict_at(study, {&tokens, 1}, tau, one.name);
    if (main.conclusion != Conclusion::inconclusive) one.holds = one.verdict.conclusion == main.conclusion;
    verdicts.push_back(std::move(one));
  }
  return verdicts;
}

// Whether a run that did not diverge has several probes.
bool has_longer_run(const Study& study) {
  for (const SeedRuns& seed : study.seeds)
    for (const auto& [tag, run] : seed.runs)
      if (!has_diverged(run) && run.tokens.size() > 1) return true;
  return false;
}

ordered_json measure_json(const MeasureVerdict& measure) {
  const ordered_json verdict = to_json(measure.verdict);
  const ordered_json holds = measure.holds ? ordered_json(*measure.holds) : ordered_json();
  return {{"tau", measure.verdict.tau},
          {"start", measure.start},
          {"mean", verdict.at("mean_pr")},
          {"conclusion", conclusion_name(measure.verdict.conclusion)},
          {"holds", holds},
          {"effects", verdict.at("effects")}};
}

// The one value that value_of(run) has for all runs that did not diverge.
template <class ValueOf>
auto shared(const Study& study, ValueOf value_of) {
  std::optional<std::invoke_result_t<ValueOf, const ConditionResults&>> found;
  for (const SeedRuns& seed : study.seeds)
    for (const auto& [tag, run] : seed.runs) {
      if (has_diverged(run)) continue;
      const auto value = value_of(run);
      if (found && *found != value) return decltype(value)();
      found = value;
    }
  return found.value_or(std::nullopt);
}

Reading reading_at(const Study& study, std::int64_t tokens, double tau) {
  const auto updates = [&](const ConditionResults& run) {
    return run.updates ? std::optional((*run.updates)[*probe_at(run, tokens)]) : std::nullopt;
  };
  return {tokens, shared(study, updates), shared(study, [](const auto& run) { return run.adamw_lr; }),
          verdict_at(study, {&tokens, 1}, tau)};
}

// The PR where the validation loss last passed `level`, between two probes up to `last`; NaN where it did not.
double pr_at_loss(const ConditionResults& run, std::size_t last, double level) {
  if (run.val_loss[last] == level) return run.mean_pr[last];
  for (std::size_t i = last; i > 0; --i) {
    const double above = run.val_loss[i - 1], below = run.val_loss[i];
    if (!(below <= level && level < above)) continue;
    return run.mean_pr[i] + (run.mean_pr[i - 1] - run.mean_pr[i]) * (level - below) / (above - below);
  }
  return missing;
}

EffectDetails details_of(const Study& study, const Contrast& contrast, std::int64_t tokens) {
  EffectDetails details;
  std::vector<double> at_equal_loss;
  std::vector<std::vector<double>> layers;
  for (const SeedRuns& seed : study.seeds) {
    const ConditionResults *first = seed.find(contrast.first), *second = seed.find(contrast.second);
    if (first == nullptr || second == nullptr || has_diverged(*first) || has_diverged(*second)) continue;
    const std::size_t probe_1 = *probe_at(*first, tokens), probe_2 = *probe_at(*second, tokens);
    const double level = std::max(first->val_loss[probe_1], second->val_loss[probe_2]);
    at_equal_loss.push_back(pr_at_loss(*first, probe_1, level) - pr_at_loss(*second, probe_2, level));
    layers.resize(first->layer_pr.size());
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      layers[layer].push_back(first->layer_pr[layer][probe_1] - second->layer_pr[layer][probe_2]);
  }
  details.at_equal_loss = finite_mean(at_equal_loss);
  for (const auto& differences : layers) details.layers.push_back(finite_mean(differences));
  return details;
}

ordered_json layers_json(const EffectDetails& details) {
  ordered_json object = {{"difference", ordered_json::array()}};
  for (const MeanInterval& layer : details.layers) {
    object["difference"].push_back(layer.mean);
    if (std::isnan(details.noise_size())) continue;
    object["low"].push_back(layer.low);
    object["high"].push_back(layer.high);
  }
  object["mean_abs"] = details.mean_size();
  if (!std::isnan(details.noise_size())) object["noise_abs"] = details.noise_size();
  return object;
}

ordered_json reading_json(const Reading& reading) {
  ordered_json object = {{"tokens", reading.tokens}};
  if (reading.updates) object["updates"] = *reading.updates;
  if (const auto product = reading.updates_x_adamw_lr()) object["updates_x_adamw_lr"] = *product;
  object["conclusion"] = conclusion_name(reading.verdict.conclusion);
  for (const Effect& effect : reading.verdict.effects)
    object["differences"][effect.contrast.name] = effect.difference();
  return object;
}

// Names for the folders of seeds: their own where these are seed_N and differ, otherwise seed_1, seed_2, ...
std::vector<std::string> seed_names(const Study& study) {
  std::vector<std::string> names;
  for (const SeedRuns& seed : study.seeds) names.push_back(seed.name);
  const bool usable = std::set<std::string>(names.begin(), names.end()).size() == names.size() &&
                      std::ranges::all_of(names, [](const auto& name) { return name.starts_with("seed_"); });
  for (std::size_t i = 0; !usable && i < names.size(); ++i) names[i] = fmt::format("seed_{}", i + 1);
  return names;
}

ordered_json conditions_json(const SeedRuns& seed) {
  ordered_json object = {{"A", nullptr}, {"B", nullptr}, {"C", nullptr}};
  for (const auto& [tag, run] : seed.runs)
    (is_main(tag) ? object[key_of(tag)] : object["conditions"][tag]) = results_json(run);
  return object;
}

void check(const AnalyzeJob& job) {
  if (job.folders.empty())
    fail_input("--analyze DIR is required: a folder with {}/{} and the like", condition_tags[0], results_name);
  check_tau(job.tau);
  theme_named(job.theme);
}

ordered_json config_of(const AnalyzeJob& job, const Study& study) {
  std::vector<std::string> folders;
  for (const fs::path& folder : job.folders) folders.push_back(folder.string());
  std::vector<std::string> tags;
  for (const Condition& condition : conditions_of(study)) tags.push_back(condition.tag);
  ordered_json config = {{"analyze", fmt::format("{}", fmt::join(folders, ","))},
                         {"tau", job.tau},
                         {"conditions", fmt::format("{}", fmt::join(tags, ","))},  // names of folders
                         {"title", study.title}};                                  // draw_study_run() needs it
  if (!study.own.empty()) config["own_conditions"] = text_of(study.own);
  return config;
}

}  // namespace

void check_tau(double tau) {
  check_number("--tau", tau, tau_range);
}

double EffectDetails::mean_size() const {
  double sum = 0;
  for (const MeanInterval& layer : layers) sum += std::fabs(layer.mean);
  return sum / static_cast<double>(layers.size());
}

double EffectDetails::noise_size() const {
  double sum = 0;
  for (const MeanInterval& layer : layers) sum += layer.standard_error;
  return std::sqrt(2 / std::numbers::pi) * sum / static_cast<double>(layers.size());  // E|x| of a normal x about 0
}

StudyResult analyze(const Study& study, double tau) {
  const Integers probes = common_tokens(study);
  if (probes.size() == 1 && has_longer_run(study))
    fail_input("the runs share no probe but that after {}; train them with the same train.tokens and train.probe_every",
               tokens_text(probes.front()));
  StudyResult result;
  result.tokens = probes.back();
  for (const std::int64_t at : probes) result.over_time.push_back(reading_at(study, at, tau));
  result.verdict = result.over_time.back().verdict;
  for (auto reading = result.over_time.rbegin(); reading != result.over_time.rend(); ++reading) {
    if (reading->verdict.conclusion != result.verdict.conclusion) break;
    result.held_since = reading->tokens;
  }
  if (probes.size() >= probes_of_second_reading)
    result.last_probes = verdict_at(study, std::span(probes).last(probes_of_second_reading), tau);
  for (const Effect& effect : result.verdict.effects)
    result.details.push_back(details_of(study, effect.contrast, result.tokens));
  for (const ConditionValues& values : result.verdict.conditions) {
    const auto loss = [&](const ConditionResults& run) { return run.val_loss[*probe_at(run, result.tokens)]; };
    result.val_loss.push_back(finite_mean(over_seeds(study, values.condition.tag, loss)));
  }
  result.measures = measure_verdicts(study, result.tokens, result.verdict);
  result.diverged = diverged_runs(study, result.tokens);
  result.warnings = warnings_of(study, result);
  return result;
}

ordered_json verdict_json(const StudyResult& result) {
  ordered_json object = to_json(result.verdict);
  for (std::size_t i = 0; i < result.details.size(); ++i) {
    ordered_json& effect = object["effects"][result.verdict.effects[i].contrast.name];
    if (result.details[i].at_equal_loss.n > 0) effect["at_equal_loss"] = to_json(result.details[i].at_equal_loss);
    effect["by_layer"] = layers_json(result.details[i]);
  }
  object["tokens"] = result.tokens;
  object["held_since"] = result.held_since;
  if (result.last_probes)
    object["last_probes"] = {{"probes", probes_of_second_reading},
                             {"conclusion", conclusion_name(result.last_probes->conclusion)},
                             {"effects", to_json(*result.last_probes)["effects"]}};
  object["over_time"] = ordered_json::array();
  for (const Reading& reading : result.over_time) object["over_time"].push_back(reading_json(reading));
  for (const MeasureVerdict& measure : result.measures) object["measures"][measure.name] = measure_json(measure);
  object["diverged"] = ordered_json::array();
  for (const auto& [seed, tag, tokens] : result.diverged)
    object["diverged"].push_back({{"seed", seed}, {"tag", tag}, {"tokens", tokens}});
  return object;
}

std::string losses_text(const std::vector<MeanInterval>& val_loss, double unigram_entropy,
                        std::optional<double> true_entropy) {
  constexpr double step = 1000;  // three digits are printed: equal ones are not compared
  const auto printed = [](double value) { return std::round(value * step); };
  std::vector<double> losses;
  for (const MeanInterval& loss : val_loss)
    if (std::isfinite(loss.mean)) losses.push_back(printed(loss.mean));
  const auto all = [&](auto holds) { return !losses.empty() && std::ranges::all_of(losses, holds); };
  const bool below = all([&](double loss) { return loss < printed(unigram_entropy); });
  const bool above = all([&](double loss) { return loss > printed(unigram_entropy); });
  const std::string unigram = fmt::format("the unigram entropy of the text, {:.3f} nats", unigram_entropy);
  if (!true_entropy) {
    if (below || above) return fmt::format("the validation losses are {} {}", below ? "below" : "above", unigram);
    return fmt::format("for comparison: {}", unigram);
  }
  const std::string true_text = fmt::format("the language's true entropy, {:.3f} nats", *true_entropy);
  if (below && all([&](double loss) { return loss > printed(*true_entropy); }))
    return fmt::format("the validation losses lie between {}, and {}", true_text, unigram);
  if (above) return fmt::format("the validation losses are above {}; for comparison: {}", unigram, true_text);
  return fmt::format("for comparison: {}, and {}", true_text, unigram);
}

ordered_json study_definitions() {
  ordered_json definitions = {
      {std::string(main_measure),
       "mean over layers and KV heads of (sum s)^2 / sum s^2, s the singular values of a head's keys before RoPE"}};
  for (const FurtherSeries& series : further_series) definitions[std::string(series.name)] = series.definition;
  return definitions;
}

void write_results(const ConditionResults& results, const RunFolder& folder, const std::filesystem::path& place) {
  folder.write(place / results.tag / results_name, results_text(results));
}

void write_results(const Study& study, const RunFolder& folder) {
  const auto names = seed_names(study);
  for (std::size_t i = 0; i < study.seeds.size(); ++i)
    for (const auto& [tag, run] : study.seeds[i].runs)
      write_results(run, folder, study.seeds.size() == 1 ? "" : names[i]);
}

void write_combined(const Study& study, const StudyResult& result, double seconds, const RunFolder& folder) {
  ordered_json object;
  if (study.seeds.size() == 1) {
    object = conditions_json(study.seeds.front());
  } else {
    const auto names = seed_names(study);
    for (std::size_t i = 0; i < study.seeds.size(); ++i) {
      ordered_json seed = {{"seed", names[i]}};
      seed.update(conditions_json(study.seeds[i]));
      object["seeds"].push_back(std::move(seed));
    }
  }
  object["elapsed_s"] = seconds;
  object["verdict"] = verdict_json(result);
  folder.write("combined.json", json_line(object) + "\n");
}

AnalyzeOutcome run_analysis(const AnalyzeJob& job) {
  const auto start = Clock::now();
  const InterruptGuard guard;
  check(job);
  const Study study = load_study(job.folders);
  AnalyzeOutcome outcome{.out = {}, .result = analyze(study, job.tau)};  // what it refuses leaves no folder behind
  RunFolder folder(job.folder, {.command = study_command,
                                .config = config_of(job, study),
                                .facts = {{"definitions", study_definitions()}, {"device", "cpu"}},
                                .inputs = job.folders});
  outcome.out = folder.path();
  const std::vector<Figure> figures = study_figures(figure_data(study, outcome.result));
  return folder.live([&] {
    if (!folder.already_complete()) write_results(study, folder);
    if (!folder.already_complete() || !are_drawn(figures, folder.path()))
      draw(figures, folder.place(), theme_named(job.theme));
    if (folder.already_complete()) return outcome;
    outcome.seconds = seconds_since(start);
    write_combined(study, outcome.result, outcome.seconds, folder);
    folder.finish(RunStatus::complete, {{"verdict", to_json(outcome.result.verdict)},
                                        {"seconds", outcome.seconds},
                                        {"inputs_xxh3_128", study.inputs}});
    return outcome;
  });
}

StudyOutcome read_outcome(const fs::path& run, double tau) {
  const ordered_json manifest = read_manifest(run);
  const auto number = [&](const char* pointer) -> std::optional<double> {
    const ordered_json value = manifest.value(ordered_json::json_pointer(pointer), ordered_json());
    return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
  };
  StudyOutcome outcome;
  outcome.out = run;
  outcome.result = analyze(load_study({run}), tau);
  outcome.unigram_entropy = number("/entropy/unigram");
  outcome.true_entropy = number("/entropy/true");
  outcome.device = text_at(manifest, "device");
  outcome.tokens_per_s = number("/tokens_per_s").value_or(0);
  return outcome;
}

std::vector<fs::path> draw_study_run(const fs::path& run, const fs::path& out, const std::string& theme) {
  const Theme& colours = theme_named(theme);  // an unknown name is refused before anything is read
  Study study = load_study({run});
  const ordered_json config = read_manifest(run).value("config", ordered_json::object());
  study.title = text_at(config, "title", run_title(run, text_at(config, "preset")));  // of an analysis, of training
  const double tau = config.value("tau", config.value("/study/tau"_json_pointer, default_tau));
  return draw(study_figures(figure_data(study, analyze(study, tau))), out, colours).files;
}

}  // namespace headscope
