#include "study/runs.h"

#include <charconv>
#include <set>

#include "core/atomic_file.h"
#include "core/error.h"
#include "formats/content_hash.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

std::string name_of(const fs::path& folder) {
  return fs::absolute(folder / "").parent_path().filename().string();
}

bool holds_condition(const fs::path& folder) {
  return std::any_of(condition_tags.begin(), condition_tags.end(),
                     [&](std::string_view tag) { return fs::exists(folder / tag / results_name); });
}

// N of "seed_N".
std::optional<std::uint64_t> seed_number(const std::string& name) {
  constexpr std::string_view prefix = "seed_";
  if (!name.starts_with(prefix)) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
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

void check_depth(const ConditionResults& results, const fs::path& file, std::size_t& layers, fs::path& first) {
  if (first.empty()) {
    layers = results.layer_pr.size();
    first = file;
  } else if (results.layer_pr.size() != layers) {
    fail_input("{}: has {} layers, {} has {}; runs of one study have the same model", file.string(),
               results.layer_pr.size(), first.string(), layers);
  }
}

}  // namespace

Study load_study(const std::vector<fs::path>& folders) {
  Study study;
  std::set<fs::path> seen;
  std::size_t layers = 0;
  fs::path first;
  for (const fs::path& given : folders) {
    for (const fs::path& folder : seed_folders(given)) {
      if (!seen.insert(fs::weakly_canonical(folder)).second)
        fail_input("--analyze {}: is given twice; a seed counts once", folder.string());
      SeedRuns runs{name_of(folder), {}};
      for (std::size_t i = 0; i < n_conditions; ++i) {
        const fs::path file = folder / condition_tags[i] / results_name;
        if (!fs::exists(file)) continue;
        const std::string text = read_file(file);
        runs.conditions[i] = parse_results(text, file.string(), condition_tags[i]);
        study.inputs[file.string()] = content_hash(text);
        check_depth(*runs.conditions[i], file, layers, first);
      }
      study.seeds.push_back(std::move(runs));
    }
  }
  study.title = name_of(folders.front());
  return study;
}

std::optional<std::size_t> probe_at(const ConditionResults& results, std::int64_t tokens) {
  const auto after = std::upper_bound(results.tokens.begin(), results.tokens.end(), tokens);
  if (after == results.tokens.begin() || *(after - 1) != tokens) return std::nullopt;
  return static_cast<std::size_t>(after - results.tokens.begin()) - 1;
}

std::int64_t last_common_tokens(const Study& study) {
  std::vector<const ConditionResults*> runs;
  for (const SeedRuns& seed : study.seeds)
    for (const auto& results : seed.conditions)
      if (results) runs.push_back(&*results);
  const Integers& tokens = runs.front()->tokens;
  const auto everywhere = [&](std::int64_t at) {
    return std::all_of(runs.begin(), runs.end(),
                       [&](const auto* results) { return probe_at(*results, at).has_value(); });
  };
  const auto found = std::find_if(tokens.rbegin(), tokens.rend(), everywhere);
  if (found == tokens.rend()) fail_input("{}: the runs have no probe at the same number of tokens", study.title);
  return *found;
}

}  // namespace headscope
