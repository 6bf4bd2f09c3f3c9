#include "run/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace headscope {
namespace {

namespace fs = std::filesystem;

// In a pattern, # stands for digits, * for letters, digits, - and _ (at least one each), and / separates folders.

constexpr std::array<std::string_view, 14> of_the_run = {
    manifest_name,
    config_name,
    lock_name,
    "combined.json",
    "surgery.parquet",
    "surgery.csv",
    "comparison.csv",
    "head_metrics.csv",
    "head_bucket_plasticity.csv",
    "head_component_weights.csv",
    "head_uncertainty.csv",
    "cell_uncertainty.csv",
    "head_replicates.csv",
    "finished_heads.journal",
};

constexpr std::array<std::string_view, 2> of_the_demo = {"data/l#h#q/data.parquet", "data/l#h#k/data.parquet"};

// Of one training, in a run or in a condition of a study.
constexpr std::array<std::string_view, 10> of_a_training = {
    "results.json",
    "summary.md",
    "summary.json",
    "roles.json",
    "roles.parquet",
    "role_timeline.parquet",
    "role_transitions.parquet",
    "checkpoints/step-#/model.safetensors",
    "checkpoints/step-#/optimizer.safetensors",
    "checkpoints/step-#/state.json",
};

constexpr std::array<std::string_view, 5> growing_tables = {"steps", "probes", "layers", "heads", "gamma"};

constexpr std::array<std::string_view, 5> study_figures = {"1_loss", "2_key_pr_causal", "3_per_layer",
                                                           "4_causal_decomposition", "5_gamma_cv"};

constexpr std::array<std::string_view, 23> figures = {"bucket_heatmap",
                                                      "bucket_heatmap_l#",
                                                      "component_concentration",
                                                      "component_weights",
                                                      "effective_rank",
                                                      "entropy_norm_scatter",
                                                      "gamma_heatmap",
                                                      "key_magnitude_profile",
                                                      "key_norm_evolution",
                                                      "latent_redundancy",
                                                      "norm_divergence",
                                                      "outlier_magnitude",
                                                      "plasticity_by_layer",
                                                      "plasticity_comparison",
                                                      "plasticity_difference",
                                                      "plasticity_distance",
                                                      "plasticity_map",
                                                      "plasticity_ranked",
                                                      "qk_ratio",
                                                      "role_map",
                                                      "role_timeline",
                                                      "surgery_quantisation",
                                                      "surgery_removal"};

constexpr std::array<std::string_view, 5> figure_endings = {".png", ".svg", ".gp", ".dat", ".*.dat"};

// Where a training may be: in the run, in a condition, in a condition of one of several seeds.
constexpr std::array<std::string_view, 7> training_places = {"",           "QK/",          "QK_frozen/",       "NoQK/",
                                                             "seed_*/QK/", "seed_*/NoQK/", "seed_*/QK_frozen/"};

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

// # and * take as much as they can: what follows them never begins with such a character.
bool matches(std::string_view pattern, std::string_view name) {
  while (!pattern.empty()) {
    const char wanted = pattern.front();
    pattern.remove_prefix(1);
    if (wanted != '#' && wanted != '*') {
      if (!name.starts_with(wanted)) return false;
      name.remove_prefix(1);
      continue;
    }
    const auto taken = std::ranges::find_if_not(
        name, [&](char c) { return wanted == '#' ? std::isdigit(static_cast<unsigned char>(c)) != 0 : is_plain(c); });
    if (taken == name.begin()) return false;
    name.remove_prefix(static_cast<std::size_t>(taken - name.begin()));
  }
  return name.empty();
}

// The first part of a path of patterns or names, which is taken from it.
std::string_view take_part(std::string_view& path) {
  const std::size_t slash = std::min(path.find('/'), path.size());
  const std::string_view part = path.substr(0, slash);
  path.remove_prefix(std::min(slash + 1, path.size()));
  return part;
}

// The path is what the pattern means, or a folder on the way to it.
bool leads_to(std::string_view path, std::string_view pattern) {
  while (!path.empty())
    if (pattern.empty() || !matches(take_part(pattern), take_part(path))) return false;
  return true;
}

// The path is what the pattern means, or inside it.
bool lies_in(std::string_view path, std::string_view pattern) {
  while (!pattern.empty())
    if (path.empty() || !matches(take_part(pattern), take_part(path))) return false;
  return true;
}

// ".heads.parquet.1234.0.tmp", what AtomicFile writes before it renames; gives "heads.parquet".
std::optional<std::string_view> name_of_temporary(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(".tmp")) return std::nullopt;
  name = name.substr(1, name.size() - 5);
  for (int number = 0; number < 2; ++number) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos || !matches("#", name.substr(dot + 1))) return std::nullopt;
    name = name.substr(0, dot);
  }
  return name;
}

std::string joined(std::string_view a, std::string_view b, std::string_view c = "") {
  return std::string(a).append(b).append(c);
}

std::vector<std::string> all_files() {
  std::vector<std::string> files(of_the_run.begin(), of_the_run.end());
  files.insert(files.end(), of_the_demo.begin(), of_the_demo.end());
  for (const std::string_view ending : figure_endings)
    for (const std::string_view figure : study_figures) files.push_back(joined(figure, ending));
  for (const std::string_view place : training_places) {
    for (const std::string_view name : of_a_training) files.push_back(joined(place, name));
    for (const std::string_view table : growing_tables)
      for (const std::string_view folder : {".parquet", ".parquet.parts"})
        files.push_back(joined(place, table, folder) + "/part-#.parquet");
    for (const std::string_view ending : figure_endings)
      for (const std::string_view figure : figures) files.push_back(joined(place, "plots/") + joined(figure, ending));
  }
  return files;
}

// Folders that go with all that they hold, and files.
std::vector<std::string> all_leftovers() {
  std::vector<std::string> leftovers = {writing_name, removing_name, ".drawing-*"};
  for (const std::string_view place : training_places) {
    leftovers.push_back(joined(place, "plots/.drawing-*"));
    leftovers.push_back(joined(place, "checkpoints/.partial-step-#"));
    leftovers.push_back(joined(place, ".part-#.parquet.#.#.tmp"));  // written beside the folder of its table
    for (const std::string_view table : growing_tables)
      leftovers.push_back(joined(place, ".", table) + ".parquet.merged");
  }
  return leftovers;
}

template <class Condition>
std::optional<fs::path> find_entry(const fs::path& folder, Condition&& condition) {
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (condition(entry, entry.path().lexically_relative(folder))) return entry.path();
  return std::nullopt;
}

}  // namespace

bool is_plain_csv_name(std::string_view name) {
  constexpr std::string_view ending = ".csv";
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  return !name.empty() && std::ranges::all_of(name, [](char c) { return is_plain(c) || c == '.'; }) && name[0] != '.';
}

RunNames::RunNames(const nlohmann::ordered_json& manifest) : files_(all_files()), leftovers_(all_leftovers()) {
  const auto config = manifest.is_object() ? manifest.find("config") : manifest.end();
  if (!manifest.is_object() || config == manifest.end() || !config->is_object()) return;
  for (const char* key : {"output_csv", "bucket_csv", "component_csv"}) {
    const auto name = config->find(key);
    if (name == config->end() || !name->is_string()) continue;
    if (is_plain_csv_name(name->get_ref<const std::string&>())) files_.push_back(*name);
  }
}

bool RunNames::is_ours(const fs::path& relative) const {
  const std::string path = relative.generic_string();
  return std::ranges::any_of(files_, [&](const std::string& file) { return leads_to(path, file); }) ||
         lies_in(path, replaced_name) || lies_in(path, publishing_name) || is_leftover(relative);
}

bool RunNames::is_leftover(const fs::path& relative) const {
  const std::string path = relative.generic_string();
  if (std::ranges::any_of(leftovers_, [&](const std::string& leftover) { return lies_in(path, leftover); }))
    return true;
  const std::string last = relative.filename().string();
  const auto name = name_of_temporary(last);
  if (!name) return false;
  const std::string whole = (relative.parent_path() / *name).generic_string();
  return std::ranges::any_of(files_, [&](const std::string& file) { return leads_to(whole, file); });
}

std::vector<fs::path> leftovers(const fs::path& folder, const RunNames& names) {
  std::vector<fs::path> found;
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path relative = entry->path().lexically_relative(folder);
    const bool is_leftover = names.is_leftover(relative);
    if (is_leftover) found.push_back(entry->path());
    if (is_leftover || !names.is_ours(relative) || relative == replaced_name) entry.disable_recursion_pending();
  }
  return found;
}

std::optional<fs::path> foreign_entry(const fs::path& folder, const RunNames& names) {
  return find_entry(folder, [&](const auto&, const fs::path& relative) { return !names.is_ours(relative); });
}

std::optional<fs::path> linked_entry(const fs::path& folder, const RunNames& names) {
  return find_entry(folder, [&](const auto& entry, const fs::path& relative) {
    return entry.is_symlink() && names.is_ours(relative);
  });
}

}  // namespace headscope
