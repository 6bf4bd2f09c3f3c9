#include "study/analyze.h"

#include <chrono>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/json_text.h"
#include "study/summary.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

void check(const AnalyzeJob& job) {
  if (job.folders.empty()) fail_input("--analyze DIR is required: a folder with QK/results.json and the like");
  if (!(job.tau > 0) || std::isinf(job.tau)) fail_input("--tau {}: expected a number above 0", job.tau);
  theme_named(job.theme);
}

// Names for the folders of seeds: their own where these are seed_N and differ, otherwise seed_1, seed_2, ...
std::vector<std::string> seed_names(const Study& study) {
  std::vector<std::string> names;
  for (const SeedRuns& seed : study.seeds) names.push_back(seed.name);
  const bool usable =
      std::set<std::string>(names.begin(), names.end()).size() == names.size() &&
      std::all_of(names.begin(), names.end(), [](const auto& name) { return name.starts_with("seed_"); });
  for (std::size_t i = 0; !usable && i < names.size(); ++i) names[i] = fmt::format("seed_{}", i + 1);
  return names;
}

// The run holds what it was made from: it can be drawn, and analysed, again.
void write_results(const RunFolder& folder, const Study& study) {
  const auto names = seed_names(study);
  for (std::size_t i = 0; i < study.seeds.size(); ++i) {
    const fs::path place = study.seeds.size() == 1 ? fs::path() : fs::path(names[i]);
    for (const auto& results : study.seeds[i].conditions)
      if (results) folder.write(place / results->tag / results_name, to_results_text(*results));
  }
}

ordered_json conditions_json(const SeedRuns& seed) {
  ordered_json object;
  for (std::size_t i = 0; i < n_conditions; ++i)
    object[std::string(condition_letters[i])] =
        seed.conditions[i] ? to_results_json(*seed.conditions[i]) : ordered_json();
  return object;
}

// One seed: A, B, C. Several: a list `seeds` of such objects, each with the name of its folder.
ordered_json combined_json(const Study& study, const AnalyzeOutcome& outcome) {
  ordered_json object;
  if (study.seeds.size() == 1) {
    object = conditions_json(study.seeds.front());
  } else {
    const auto names = seed_names(study);
    object["seeds"] = ordered_json::array();
    for (std::size_t i = 0; i < study.seeds.size(); ++i) {
      ordered_json seed = {{"seed", names[i]}};
      seed.update(conditions_json(study.seeds[i]));
      object["seeds"].push_back(std::move(seed));
    }
  }
  object["elapsed_s"] = outcome.seconds;
  object["verdict"] = to_json(outcome.verdict);
  object["verdict"]["tokens"] = outcome.tokens;
  return object;
}

void warn_about(const Study& study, const AnalyzeOutcome& outcome, Console& console) {
  std::int64_t longest = 0;
  for (const SeedRuns& seed : study.seeds) {
    for (std::size_t i = 0; i < n_conditions; ++i) {
      if (!seed.conditions[i]) {
        console.warn(
            fmt::format("{}: condition {} ({}) is missing", seed.name, condition_letters[i], condition_tags[i]));
        continue;
      }
      const ConditionResults& results = *seed.conditions[i];
      longest = std::max(longest, results.tokens.back());
      if (!std::isfinite(results.mean_pr[*probe_at(results, outcome.tokens)]))
        console.warn(fmt::format("{}: {} has no mean PR at the last probe and is left out", seed.name, results.tag));
    }
  }
  if (longest > outcome.tokens)
    console.warn(
        fmt::format("runs end at different numbers of tokens; compared at {:.1f} M, the last probe that all have",
                    static_cast<double>(outcome.tokens) / 1e6));
}

std::array<std::vector<double>, n_conditions> val_loss_at(const Study& study, std::int64_t tokens) {
  std::array<std::vector<double>, n_conditions> values;
  for (const SeedRuns& seed : study.seeds)
    for (std::size_t i = 0; i < n_conditions; ++i)
      if (seed.conditions[i]) values[i].push_back(seed.conditions[i]->val_loss[*probe_at(*seed.conditions[i], tokens)]);
  return values;
}

// Where the figures' title comes from, when the run is drawn again.
ordered_json config_of(const AnalyzeJob& job, const Study& study) {
  std::vector<std::string> folders;
  for (const fs::path& folder : job.folders) folders.push_back(folder.string());
  return {{"analyze", fmt::format("{}", fmt::join(folders, ","))}, {"tau", job.tau}, {"title", study.title}};
}

}  // namespace

nlohmann::ordered_json study_definitions() {
  return {{"mean_pr",
           "mean over layers and KV heads of (sum s)^2 / sum s^2, s the singular values of a head's keys before RoPE"}};
}

std::vector<fs::path> draw_study(const Study& study, const fs::path& folder, const std::string& theme) {
  return draw_study_figures(figure_data(study, last_common_tokens(study)), folder, theme_named(theme));
}

AnalyzeOutcome judge_study(const Study& study, const fs::path& out, double tau, Console& console) {
  AnalyzeOutcome outcome;
  outcome.out = out;
  outcome.tokens = last_common_tokens(study);
  outcome.verdict = decide(mean_pr_at(study, outcome.tokens), tau);
  outcome.val_loss = val_loss_at(study, outcome.tokens);
  warn_about(study, outcome, console);
  return outcome;
}

void write_combined(const Study& study, const AnalyzeOutcome& outcome, const RunFolder& folder) {
  folder.write("combined.json", json_line(combined_json(study, outcome)) + "\n");
}

AnalyzeOutcome analyze_study(const AnalyzeJob& job, Console& console) {
  const auto start = std::chrono::steady_clock::now();
  const InterruptGuard guard;
  check(job);
  const Study study = load_study(job.folders);
  static_cast<void>(last_common_tokens(study));  // refused before a folder is made, not after
  const ordered_json facts = {{"definitions", study_definitions()}, {"device", "cpu"}};
  RunFolder folder(job.folder, {.command = study_command,
                                .command_line = job.command_line,
                                .config = config_of(job, study),
                                .facts = facts,
                                .inputs = job.folders});
  return folder.live([&] {
    AnalyzeOutcome outcome = judge_study(study, folder.path(), job.tau, console);
    if (folder.already_complete()) return outcome;
    write_results(folder, study);
    draw_study(study, folder.place(), job.theme);
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    write_combined(study, outcome, folder);
    folder.finish(
        RunStatus::complete,
        {{"verdict", to_json(outcome.verdict)}, {"seconds", outcome.seconds}, {"inputs_xxh3_128", study.inputs}});
    return outcome;
  });
}

std::vector<fs::path> draw_study_run(const fs::path& run, const fs::path& out, const std::string& theme) {
  theme_named(theme);  // an unknown name is refused before anything is read
  Study study = load_study({run});
  const ordered_json config = read_manifest(run).value("config", ordered_json::object());
  study.title = text_at(config, "title", text_at(config, "preset", study.title));  // of an analysis, of training
  return draw_study(study, out, theme);
}

}  // namespace headscope
