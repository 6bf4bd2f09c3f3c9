#include "study/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/json_text.h"
#include "core/text.h"
#include "formats/content_hash.h"
#include "run/manifest.h"
#include "study/measured_text.h"
#include "study/own_conditions.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

// The conditions whose results the folder holds, in order of their names.
std::set<std::string> tags_in(const fs::path& folder) {
  std::set<std::string> tags;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const std::string name = entry.path().filename().string();
        is_condition_tag(name) && fs::exists(entry.path() / results_name, error))
      tags.insert(name);
  return tags;
}

// N of "seed_N".
std::optional<std::uint64_t> seed_number(std::string_view name) {
  constexpr std::string_view prefix = "seed_";
  std::uint64_t number = 0;
  if (!name.starts_with(prefix) || !parse_value(name.substr(prefix.size()), number)) return std::nullopt;
  if (fmt::format("{}{}", prefix, number) != name) return std::nullopt;  // seed_007 is not seed_7
  return number;
}

// Folders that look like a seed or a condition and cannot be taken: by their names, or because they lack results.
std::vector<std::string> left_out_of(const fs::path& folder, const std::vector<Condition>& own) {
  const auto is_tag_of = [](const std::vector<Condition>& conditions, const std::string& name) {
    return std::ranges::find(conditions, name, &Condition::tag) != conditions.end();
  };
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory(error) || name.starts_with('.')) continue;
    const bool has_results = fs::exists(entry.path() / results_name, error);
    const bool is_seed = seed_number(name).has_value(), has_seed = !has_results && !tags_in(entry.path()).empty();
    const bool is_condition = is_tag_of(known_conditions(), name) || is_tag_of(own, name);
    if (is_condition_tag(name) && has_results) continue;
    if (is_seed && has_seed) continue;
    if (is_main(name)) continue;  // analyze() says that it is missing
    if (has_results || has_seed || is_condition || is_seed || lower_case(name).starts_with("seed"))
      names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

void warn_of_left_out(Study& study, const fs::path& folder) {
  const std::vector<std::string> names = left_out_of(folder, study.own);
  if (names.empty()) return;
  study.warnings.push_back(
      fmt::format("{}: left out: {}; expected folders seed_N, or names of letters, digits, - and _, with {}",
                  folder.string(), excerpt(fmt::format("{}", fmt::join(names, ", "))), results_name));
}

// The folders of single seeds, in order of their numbers.
std::vector<fs::path> seed_folders(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) fail_input("--analyze {}: is not a folder", folder.string());
  std::map<std::uint64_t, fs::path> seeds;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const auto number = seed_number(entry.path().filename().string());
    if (number && entry.is_directory(error) && !tags_in(entry.path()).empty()) seeds[*number] = entry.path();
  }
  const std::set<std::string> direct = tags_in(folder);
  if (!direct.empty() && !seeds.empty())
    fail_input("--analyze {}: holds both {}/{} and folders seed_N; name the folders that are meant", folder.string(),
               *direct.begin(), results_name);
  if (!direct.empty()) return {folder};
  if (seeds.empty())
    fail_input("--analyze {0}: holds no results; expected {1}/{4}, {2}/{4} or {3}/{4}, or folders seed_N with them",
               folder.string(), condition_tags[0], condition_tags[1], condition_tags[2], results_name);
  std::vector<fs::path> result;
  for (const auto& [number, path] : seeds) result.push_back(path);
  return result;
}

// The seed of the study that goes on in this folder with these tags; a new one where there is none.
SeedRuns& seed_of(Study& study, const fs::path& folder, const std::set<std::string>& tags) {
  const std::string name = absolute_folder(folder).filename().string();
  const auto goes_on = [&](const SeedRuns& seed) {
    return seed_number(name) && seed.name == name &&
           std::ranges::none_of(tags, [&](const auto& tag) { return seed.runs.contains(tag); });
  };
  const auto found = std::ranges::find_if(study.seeds, goes_on);
  return found != study.seeds.end() ? *found : study.seeds.emplace_back(SeedRuns{name, {}});
}

// The conditions in the folder of a seed, but for those whose results another folder of this seed has given already,
// byte for byte: a run that was made again counts once.
std::set<std::string> new_tags(Study& study, const fs::path& folder) {
  const std::string name = absolute_folder(folder).filename().string();
  std::set<std::string> tags = tags_in(folder);
  std::erase_if(tags, [&](const std::string& tag) {
    const fs::path file = folder / tag / results_name;
    const std::string hash = content_hash(read_file(file, most_results_bytes));
    const auto is_same = [&](const auto& input) {
      const fs::path seed = fs::path(input.first).parent_path().parent_path();
      return input.second == hash && seed_number(name) && absolute_folder(seed).filename().string() == name;
    };
    const auto same = std::ranges::find_if(study.inputs, is_same);
    if (same == study.inputs.end()) return false;
    study.warnings.push_back(fmt::format("{} is the same run as {}; it counts once", file.string(), same->first));
    return true;
  });
  return tags;
}

// Reads the runs of one seed and adds them to the study. `first` is the first file of the study, with its layers.
void add_seed(Study& study, const fs::path& folder, std::optional<std::pair<std::string, std::size_t>>& first) {
  const std::set<std::string> tags = new_tags(study, folder);
  if (tags.empty()) return;
  SeedRuns& seed = seed_of(study, folder, tags);
  for (const std::string& tag : tags) {
    if (is_taken(tag))
      fail_input("{}: {} is the name of an effect or the letter of a condition; rename the folder, and tag in its {}",
                 (folder / tag).string(), tag, results_name);
    const fs::path file = folder / tag / results_name;
    const std::string text = read_file(file, most_results_bytes);
    study.inputs[file.string()] = content_hash(text);
    const std::size_t layers = (seed.runs[tag] = parse_results(text, file.string(), tag)).layer_pr.size();
    if (!first) first.emplace(file.string(), layers);
    if (layers != first->second)
      fail_input("{}: has {} layers, {} has {}; runs of one study have the same model", file.string(), layers,
                 first->first, first->second);
  }
}

void add_own_conditions(Study& study, const nlohmann::ordered_json& manifest, const std::string& origin) {
  const auto config = manifest.value("config", nlohmann::ordered_json::object());
  const std::string text = text_at(config.contains("study") ? config["study"] : config, "own_conditions");
  for (Condition& condition : parse_conditions(text, origin))
    if (std::ranges::find(study.own, condition.tag, &Condition::tag) == study.own.end())
      study.own.push_back(std::move(condition));
}

// The run that the folder of a seed is, or is a part of; empty where it has no manifest.
fs::path run_of_seed(const fs::path& folder) {
  std::error_code error;
  const fs::path place = absolute_folder(folder);
  if (fs::exists(place / manifest_name, error)) return folder;
  const bool is_part = seed_number(place.filename().string()) && fs::exists(place.parent_path() / manifest_name, error);
  return is_part ? place.parent_path() : fs::path();
}

// What manifests say beside the results.
class Manifests {
 public:
  // Results can be read without the manifest, which may be damaged.
  void add(Study& study, const fs::path& run) {
    if (run.empty() || !seen_.insert(absolute_folder(run)).second) return;
    try {
      const auto manifest = read_manifest(run);
      const MeasuredText text = measured_text(manifest);
      compare_settings(study, run, text);
      compare(study, run, text);
      add_own_conditions(study, manifest, (run / manifest_name).string());
    } catch (const Error& error) {
      study.warnings.push_back(
          fmt::format("{}; what the manifest says of conditions and data is not known", error.what()));
    }
  }

 private:
  // A warning where the run was trained with other settings than the first one.
  void compare_settings(Study& study, const fs::path& run, const MeasuredText& text) {
    if (!text.is_known()) return;
    if (!first_) first_.emplace(run, text);
    const std::string others = other_settings(first_->second, text);
    if (!others.empty())
      study.warnings.push_back(
          fmt::format("{} and {}: were trained with different settings: {}; differences between them need not be "
                      "effects of the conditions",
                      first_->first.string(), run.string(), excerpt(others)));
  }

  // A warning where the run measured other text than all before it.
  void compare(Study& study, const fs::path& run, MeasuredText text) {
    if (!text.is_known()) return;
    std::string difference;
    for (const auto& [other, measured] : texts_) {
      const std::string from_this = difference_of(measured, text);
      if (from_this.empty()) return;
      if (difference.empty()) difference = from_this;
    }
    if (!difference.empty())
      study.warnings.push_back(
          fmt::format("{} and {}: their probes measured different text ({}); their PR cannot be compared",
                      texts_.front().first.string(), run.string(), difference));
    texts_.emplace_back(run, std::move(text));
  }

  std::set<fs::path> seen_;
  std::optional<std::pair<fs::path, MeasuredText>> first_;
  std::vector<std::pair<fs::path, MeasuredText>> texts_;  // those that differ
};

}  // namespace

const ConditionResults* SeedRuns::find(const std::string& tag) const {
  const auto found = runs.find(tag);
  return found == runs.end() ? nullptr : &found->second;
}

Study load_study(const std::vector<fs::path>& folders) {
  Study study{.title = absolute_folder(folders.front()).filename().string(), .seeds = {}, .inputs = {}};
  std::set<fs::path> seen;
  std::optional<std::pair<std::string, std::size_t>> first;
  Manifests manifests;
  for (const fs::path& given : folders) {
    const std::vector<fs::path> seeds = seed_folders(given);
    for (const fs::path& folder : seeds) manifests.add(study, run_of_seed(folder));
    warn_of_left_out(study, given);
    for (const fs::path& folder : seeds) {
      if (!seen.insert(fs::weakly_canonical(folder)).second)
        fail_input("--analyze {}: is given twice; a seed counts once", folder.string());
      if (folder != given) warn_of_left_out(study, folder);
      add_seed(study, folder, first);
    }
  }
  return study;
}

std::optional<std::size_t> probe_at(const ConditionResults& results, std::int64_t tokens) {
  const auto after = std::ranges::upper_bound(results.tokens, tokens);
  if (after == results.tokens.begin() || *(after - 1) != tokens) return std::nullopt;
  return static_cast<std::size_t>(after - results.tokens.begin()) - 1;
}

std::vector<Condition> conditions_of(const Study& study) {
  std::set<std::string> tags;
  for (const SeedRuns& seed : study.seeds)
    for (const auto& [tag, run] : seed.runs) tags.insert(tag);
  return conditions_with({tags.begin(), tags.end()}, study.own);
}

std::vector<const ConditionResults*> runs_of(const Study& study, const std::string& tag) {
  std::vector<const ConditionResults*> runs;
  for (const SeedRuns& seed : study.seeds)
    if (const ConditionResults* run = seed.find(tag)) runs.push_back(run);
  return runs;
}

Integers common_tokens(const std::vector<const ConditionResults*>& runs) {
  Integers tokens = runs.front()->tokens;
  std::erase_if(tokens, [&](std::int64_t at) {
    return !std::ranges::all_of(runs, [&](const auto* run) { return probe_at(*run, at).has_value(); });
  });
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

Integers common_tokens(const Study& study) {
  std::vector<const ConditionResults*> all, sound;
  for (const SeedRuns& seed : study.seeds)
    for (const auto& [tag, run] : seed.runs) {
      all.push_back(&run);
      if (!has_diverged(run)) sound.push_back(&run);
    }
  Integers tokens = common_tokens(sound.empty() ? all : sound);
  if (tokens.empty()) fail_input("{}: the runs have no probe at the same number of tokens", study.title);
  return tokens;
}

}  // namespace headscope
