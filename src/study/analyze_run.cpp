#include "study/analyze_run.h"

#include <chrono>
#include <cmath>

#include "core/interrupt.h"
#include "core/json_text.h"
#include "study/study_figures.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

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

AnalyzeOutcome run_analysis(const AnalyzeJob& job) {
  const auto start = std::chrono::steady_clock::now();
  const InterruptGuard guard;
  check(job);
  const Study study = load_study(job.folders);
  AnalyzeOutcome outcome{.out = {}, .result = analyze(study, job.tau)};  // what it refuses leaves no folder behind
  RunFolder folder(job.folder, {.command = study_command,
                                .command_line = job.command_line,
                                .config = config_of(job, study),
                                .facts = {{"definitions", study_definitions()}, {"device", "cpu"}},
                                .inputs = job.folders});
  outcome.out = folder.path();
  if (folder.already_complete()) return outcome;
  return folder.live([&] {
    write_results(study, folder);
    draw(study_figures(figure_data(study, outcome.result.tokens)), folder.place(), theme_named(job.theme));
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
  study.title = text_at(config, "title", text_at(config, "preset", study.title));  // of an analysis, of training
  return draw(study_figures(figure_data(study, last_common_tokens(study))), out, colours).files;
}

}  // namespace headscope
