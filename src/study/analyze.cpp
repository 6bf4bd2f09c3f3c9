#include "study/analyze.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/console.h"
#include "core/interrupt.h"
#include "core/json_text.h"
#include "core/text.h"
#include "study/study_figures.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

std::vector<std::string> warnings_of(const Study& study, std::int64_t tokens) {
  std::vector<std::string> warnings;
  std::int64_t longest = 0;
  for (const SeedRuns& seed : study.seeds)
    for (std::size_t i = 0; i < n_conditions; ++i) {
      const auto& run = seed.conditions[i];
      if (!run)
        warnings.push_back(fmt::format("{}: condition {} ({}) is missing", seed.name, study_conditions[i].letter,
                                       study_conditions[i].tag));
      else if (!std::isfinite(run->mean_pr[*probe_at(*run, tokens)]))
        warnings.push_back(fmt::format("{}: {} has no mean PR at the last probe and is left out", seed.name, run->tag));
      if (run) longest = std::max(longest, run->tokens.back());
    }
  if (longest > tokens)
    warnings.push_back(
        fmt::format("runs end at different numbers of tokens; compared after {}, the last probe that all have",
                    tokens_text(tokens)));
  return warnings;
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
  ordered_json object;
  for (std::size_t i = 0; i < n_conditions; ++i)
    object[std::string(study_conditions[i].letter)] =
        seed.conditions[i] ? results_json(*seed.conditions[i]) : ordered_json();
  return object;
}

void check(const AnalyzeJob& job) {
  if (job.folders.empty())
    fail_input("--analyze DIR is required: a folder with {}/{} and the like", condition_tags[0], results_name);
  if (!(job.tau > 0) || std::isinf(job.tau)) fail_input("--tau {}: expected a number above 0", job.tau);
  theme_named(job.theme);
}

ordered_json config_of(const AnalyzeJob& job, const Study& study) {
  std::vector<std::string> folders;
  for (const fs::path& folder : job.folders) folders.push_back(folder.string());
  return {{"analyze", fmt::format("{}", fmt::join(folders, ","))},
          {"tau", job.tau},
          {"title", study.title}};  // draw_study_run() needs it
}

}  // namespace

StudyResult analyze(const Study& study, double tau) {
  StudyResult result;
  result.tokens = last_common_tokens(study);
  PerCondition<std::vector<double>> mean_pr;
  for (std::size_t i = 0; i < n_conditions; ++i) {
    std::vector<double> val_loss;
    for (const ConditionResults* run : runs_of(study, i)) {
      const std::size_t probe = *probe_at(*run, result.tokens);
      mean_pr[i].push_back(run->mean_pr[probe]);
      val_loss.push_back(run->val_loss[probe]);
    }
    result.val_loss[i] = mean_interval(val_loss);
  }
  result.verdict = decide(mean_pr, tau);
  result.warnings = warnings_of(study, result.tokens);
  return result;
}

std::string losses_text(const PerCondition<MeanInterval>& val_loss, double unigram_entropy,
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
  return {{"mean_pr",
           "mean over layers and KV heads of (sum s)^2 / sum s^2, s the singular values of a head's keys before RoPE"}};
}

void write_results(const ConditionResults& results, const RunFolder& folder, const std::filesystem::path& place) {
  folder.write(place / results.tag / results_name, results_text(results));
}

void write_results(const Study& study, const RunFolder& folder) {
  const auto names = seed_names(study);
  for (std::size_t i = 0; i < study.seeds.size(); ++i)
    for (const auto& results : study.seeds[i].conditions)
      if (results) write_results(*results, folder, study.seeds.size() == 1 ? "" : names[i]);
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
  object["verdict"] = to_json(result.verdict);
  object["verdict"]["tokens"] = result.tokens;
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
  if (folder.already_complete()) return outcome;
  return folder.live([&] {
    write_results(study, folder);
    draw(study_figures(figure_data(study, outcome.result.tokens)), folder.place(), theme_named(job.theme));
    outcome.seconds = seconds_since(start);
    write_combined(study, outcome.result, outcome.seconds, folder);
    folder.finish(RunStatus::complete, {{"verdict", to_json(outcome.result.verdict)},
                                        {"seconds", outcome.seconds},
                                        {"inputs_xxh3_128", study.inputs}});
    return outcome;
  });
}

std::vector<fs::path> draw_study_run(const fs::path& run, const fs::path& out, const std::string& theme) {
  const Theme& colours = theme_named(theme);  // an unknown name is refused before anything is read
  Study study = load_study({run});
  const ordered_json config = read_manifest(run).value("config", ordered_json::object());
  study.title = text_at(config, "title", run_title(run, text_at(config, "preset")));  // of an analysis, of training
  return draw(study_figures(figure_data(study, last_common_tokens(study))), out, colours).files;
}

}  // namespace headscope
