#include "study/runs.h"

#include <algorithm>
#include <set>

#include "core/atomic_file.h"
#include "core/config.h"
#include "formats/content_hash.h"
#include "run/manifest.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

bool holds_condition(const fs::path& folder) {
  return std::ranges::any_of(condition_tags, [&](auto tag) { return fs::exists(folder / tag / results_name); });
}

// N of "seed_N".
std::optional<std::uint64_t> seed_number(std::string_view name) {
  constexpr std::string_view prefix = "seed_";
  std::uint64_t number = 0;
  if (!name.starts_with(prefix) || !parse_value(name.substr(prefix.size()), number)) return std::nullopt;
  return number;
}

// The folders of single seeds, in order of their numbers.
std::vector<fs::path> seed_folders(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) fail_input("--analyze {}: is not a folder", folder.string());
  std::map<std::uint64_t, fs::path> seeds;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto number = seed_number(entry.path().filename().string());
    if (number && entry.is_directory(error) && holds_condition(entry.path())) seeds[*number] = entry.path();
  }
  const bool direct = holds_condition(folder);
  if (direct && !seeds.empty())
    fail_input("--analyze {}: holds both {}/{} and folders seed_N; name the folders that are meant", folder.string(),
               condition_tags[0], results_name);
  if (direct) return {folder};
  if (seeds.empty())
    fail_input("--analyze {0}: holds no results; expected {1}/{4}, {2}/{4} or {3}/{4}, or folders seed_N with them",
               folder.string(), condition_tags[0], condition_tags[1], condition_tags[2], results_name);
  std::vector<fs::path> result;
  for (const auto& [number, path] : seeds) result.push_back(path);
  return result;
}

// Reads the runs of one seed and adds them to the study. `first` is the first file of the study, with its layers.
void add_seed(Study& study, const fs::path& folder, std::optional<std::pair<std::string, std::size_t>>& first) {
  SeedRuns runs{absolute_folder(folder).filename().string(), {}};
  for (std::size_t i = 0; i < n_conditions; ++i) {
    const fs::path file = folder / condition_tags[i] / results_name;
    if (!fs::exists(file)) continue;
    const std::string text = read_file(file);
    study.inputs[file.string()] = content_hash(text);
    runs.conditions[i] = parse_results(text, file.string(), condition_tags[i]);
    const std::size_t layers = runs.conditions[i]->layer_pr.size();
    if (!first) first.emplace(file.string(), layers);
    if (layers != first->second)
      fail_input("{}: has {} layers, {} has {}; runs of one study have the same model", file.string(), layers,
                 first->first, first->second);
  }
  study.seeds.push_back(std::move(runs));
}

}  // namespace

Study load_study(const std::vector<fs::path>& folders) {
  Study study{.title = absolute_folder(folders.front()).filename().string(), .seeds = {}, .inputs = {}};
  std::set<fs::path> seen;
  std::optional<std::pair<std::string, std::size_t>> first;
  for (const fs::path& given : folders)
    for (const fs::path& folder : seed_folders(given)) {
      if (!seen.insert(fs::weakly_canonical(folder)).second)
        fail_input("--analyze {}: is given twice; a seed counts once", folder.string());
      add_seed(study, folder, first);
    }
  return study;
}

std::optional<std::size_t> probe_at(const ConditionResults& results, std::int64_t tokens) {
  const auto after = std::ranges::upper_bound(results.tokens, tokens);
  if (after == results.tokens.begin() || *(after - 1) != tokens) return std::nullopt;
  return static_cast<std::size_t>(after - results.tokens.begin()) - 1;
}

std::vector<const ConditionResults*> runs_of(const Study& study, std::size_t condition) {
  std::vector<const ConditionResults*> runs;
  for (const SeedRuns& seed : study.seeds)
    if (seed.conditions[condition]) runs.push_back(&*seed.conditions[condition]);
  return runs;
}

std::int64_t last_common_tokens(const Study& study) {
  std::vector<const ConditionResults*> runs;
  for (std::size_t i = 0; i < n_conditions; ++i)
    for (const ConditionResults* run : runs_of(study, i)) runs.push_back(run);
  const auto everywhere = [&](std::int64_t at) {
    return std::ranges::all_of(runs, [&](const auto* run) { return probe_at(*run, at).has_value(); });
  };
  const Integers& tokens = runs.front()->tokens;
  const auto found = std::find_if(tokens.rbegin(), tokens.rend(), everywhere);
  if (found == tokens.rend()) fail_input("{}: the runs have no probe at the same number of tokens", study.title);
  return *found;
}

}  // namespace headscope
