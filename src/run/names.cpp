#include "run/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/lists.h"
#include "run/claim.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

// In a pattern, # stands for digits, * for letters, digits, - and _ (at least one each), @ for a name that may have
// dots, too, but not first, {a,b} for a or b, and / separates folders.

constexpr const char* of_the_run =
    "{combined.json,surgery.parquet,surgery.csv,comparison.csv,head_metrics.csv,"
    "head_bucket_plasticity.csv,head_component_weights.csv,head_uncertainty.csv,cell_uncertainty.csv,"
    "head_replicates.csv,head_checks.csv,finished_heads.journal}";
// A capture: a run of its own, or the data of a run of plasticity.
constexpr const char* of_a_capture[] = {"{,data/}l#h#{q,k}/data.parquet",
                                        "{,data/}{parts/part-#.safetensors,_saver_state.json}"};
constexpr const char* study_figures =
    "{1_loss,2_key_pr_causal,3_per_layer,4_causal_decomposition,5_gamma_cv,"
    "6_effects_over_time,7_effects_by_layer,8_score_spread}";

// Of one training, in a run or in a condition of a study.
constexpr const char* of_a_training[] = {
    "{results.json,summary.md,summary.json,models.json,progress.json,events.jsonl,claim.json,report.html}",
    "{attention,tokens,examples}.parquet",
    "{steps,probes,layers,heads,gamma}.parquet{,.parts}/part-#.parquet",
    ".{steps,probes,layers,heads,gamma}.parquet.merged/part-#.parquet",
    "checkpoints/{,.partial-}step-#/{model.safetensors,optimizer.safetensors,state.json}",
};
// Where roles may be (roles_place in heads/roles/run.h).
constexpr const char* role_places = "{,roles/@/,roles/@/train/,roles/@/step-#/,roles/@/train/step-#/}";
constexpr const char* roles = "{roles.json,roles.parquet,role_timeline.parquet,role_transitions.parquet}";
constexpr const char* figures =
    "{bucket_heatmap,bucket_heatmap_l#,component_concentration,component_weights,effective_rank,entropy_norm_scatter,"
    "gamma_heatmap,gaussian_check,gaussian_gap,key_magnitude_profile,key_norm_evolution,latent_redundancy,metric_*,"
    "norm_divergence,"
    "outlier_magnitude,plasticity_by_layer,plasticity_comparison,plasticity_difference,plasticity_distance,plasticity_"
    "map,"
    "plasticity_ranked,qk_ratio,surgery_quantisation,surgery_removal}";
constexpr const char* role_figures = "{role_map,role_timeline}";

// Adds the pattern, once for each alternative.
void expand(const std::string& pattern, std::vector<std::string>& into) {
  const std::size_t open = pattern.find('{'), close = pattern.find('}');
  if (open == std::string::npos) return into.push_back(pattern);
  for (const std::string& one : comma_separated(pattern.substr(open + 1, close - open - 1)))
    expand(pattern.substr(0, open) + one + pattern.substr(close + 1), into);
}

bool is_plain(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

bool is_dotted_name(std::string_view name) {
  return !name.empty() && name[0] != '.' && std::ranges::all_of(name, [](char c) { return is_plain(c) || c == '.'; });
}

// A pattern has no plain character right behind # or *, so they take as much as they can.
bool matches(std::string_view pattern, std::string_view name) {
  while (!pattern.empty()) {
    const char wanted = pattern.front();
    pattern.remove_prefix(1);
    if (wanted == '@') return is_dotted_name(name);
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

// The path is the file that the pattern means, or a folder on the way to it.
bool leads_to(std::string_view path, bool is_folder, std::string_view pattern) {
  while (!path.empty())
    if (pattern.empty() || !matches(take_part(pattern), take_part(path))) return false;
  return is_folder != pattern.empty();
}

// Where the training of a condition may be: in the run, or in the folder of one of several seeds.
std::string places_of(std::string_view tag) {
  return fmt::format("{0}/,seed_*/{0}/", tag);
}

const std::string drawn = "{,.drawing-*/}", endings = "{.png,.svg,.gp,.dat,.*.dat}", log = ".drawing-*/gnuplot-#.log";

constexpr std::array<std::string_view, 4> of_the_life = {writing_name, publishing_name, replaced_name, removing_name};

bool is_of_the_life(std::string_view name) {
  return std::ranges::find(of_the_life, name) != of_the_life.end();
}

bool is_folder(const fs::directory_entry& entry) {
  return fs::is_directory(entry.symlink_status());
}

// The entries of a folder, sorted.
std::vector<fs::directory_entry> listing(const fs::path& folder) {
  std::vector<fs::directory_entry> entries{fs::directory_iterator(folder), fs::directory_iterator()};
  std::sort(entries.begin(), entries.end());
  return entries;
}

void add_our_entries(const fs::path& run, const fs::path& inside, const RunNames& names, std::vector<fs::path>& found) {
  for (const fs::directory_entry& entry : listing(run / inside)) {
    const fs::path relative = inside / entry.path().filename();
    if (relative == lock_name || relative == claim_name || is_of_the_life(relative.native())) continue;
    if (!names.is_ours(relative, is_folder(entry))) continue;
    if (is_folder(entry) && foreign_entry(run, names, relative))
      add_our_entries(run, relative, names, found);
    else
      found.push_back(relative);
  }
}

}  // namespace

bool is_plain_csv_name(std::string_view name) {
  constexpr std::string_view ending = ".csv";
  if (!name.ends_with(ending)) return false;
  name.remove_suffix(ending.size());
  return is_dotted_name(name);
}

bool is_condition_tag(std::string_view name) {
  constexpr std::size_t longest = 64;  // a folder has the name, and tables a column for it
  return !name.empty() && name.size() <= longest && !name.starts_with("seed_") && name != plots_name &&
         name != roles_folder && name != checkpoints_name && std::ranges::all_of(name, is_plain);
}

RunNames::RunNames() : files_{manifest_name, config_name, lock_name} {
  unfinished_folders_ = {writing_name, removing_name, ".drawing-*"};
  for (const std::string& pattern : {std::string(of_the_run), drawn + study_figures + endings, log})
    expand(pattern, files_);
  for (const char* pattern : of_a_capture) expand(pattern, files_);
  std::string places;
  for (const std::string_view tag : condition_tags) places += "," + places_of(tag);
  add_trainings(places);
}

// `places`: a list of folders.
void RunNames::add_trainings(const std::string& places) {
  const auto in_places = [&](const std::string& pattern) { return fmt::format("{{{}}}{}", places, pattern); };
  for (const std::string& pattern :
       {"plots/" + drawn + figures + endings, std::string(role_places) + roles,
        role_places + ("plots/" + drawn) + role_figures + endings, role_places + ("plots/" + log)})
    expand(in_places(pattern), files_);
  for (const char* pattern : of_a_training) expand(in_places(pattern), files_);
  expand(in_places(".part-#.parquet.#.#.tmp"), half_written_);  // written beside the folder of its table
  expand(in_places("checkpoints/.partial-step-#"), unfinished_folders_);
  expand(in_places(std::string(role_places) + "plots/.drawing-*"), unfinished_folders_);
}

void RunNames::add_chosen(const nlohmann::ordered_json& manifest) {
  const auto config = manifest.is_object() ? manifest.value("config", nlohmann::ordered_json()) : manifest;
  for (const char* key : {"output_csv", "bucket_csv", "component_csv"}) {
    const std::string name = text_at(config, key);
    if (is_plain_csv_name(name)) files_.push_back(name);
  }
  const auto study = config.is_object() ? config.value("study", nlohmann::ordered_json()) : config;
  for (const auto& part : {config, study})  // of an analysis, of training
    for (const std::string& tag : comma_separated(text_at(part, "conditions")))
      if (is_condition_tag(tag)) add_trainings(places_of(tag));
}

bool RunNames::is_half_written(std::string_view path) const {
  const auto means = [&](std::string_view name) {
    return [name](const std::string& pattern) { return leads_to(name, /*is_folder=*/false, pattern); };
  };
  if (std::ranges::any_of(half_written_, means(path))) return true;
  const std::size_t last = path.rfind('/') + 1;  // 0 without one
  const auto name = name_of_temporary(path.substr(last));
  return name && std::ranges::any_of(files_, means(std::string(path.substr(0, last)).append(*name)));
}

bool RunNames::is_ours(const fs::path& relative, bool is_folder) const {
  const std::string path = relative.generic_string();
  std::string_view rest = path;
  // Below a folder of the run's life, the names are those of a run again.
  while (is_of_the_life(rest.substr(0, rest.find('/'))))
    if (take_part(rest); rest.empty()) return is_folder;
  return std::ranges::any_of(files_, [&](const std::string& file) { return leads_to(rest, is_folder, file); }) ||
         (!is_folder && is_half_written(rest));
}

bool RunNames::is_leftover(const fs::path& relative, bool is_folder) const {
  const std::string path = relative.generic_string();
  if (!is_folder) return is_half_written(path);
  return std::ranges::any_of(unfinished_folders_, [&](const std::string& folder) {
    return leads_to(path, /*is_folder=*/false, folder);  // the whole of the pattern
  });
}

namespace {

// The temporary file of a process that is about to claim something.
bool is_proposal(const fs::path& file) {
  return name_of_temporary(file.filename().string()) == claim_name && is_claimed(file);
}

// A folder that is renamed or removed just now is another process's.
bool holds_nothing_else(const fs::path& run, const RunNames& names, const fs::path& folder) {
  try {
    return !foreign_entry(run, names, folder);
  } catch (const fs::filesystem_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory) return false;
    throw;
  }
}

// Other processes may be at work there: entries may be gone before they are looked at.
void add_leftovers(const fs::path& run, const fs::path& inside, const RunNames& names, std::vector<fs::path>& found) {
  std::error_code error;
  fs::directory_iterator entry(run / inside, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path relative = inside / entry->path().filename();
    const bool folder = is_folder(*entry), is_leftover = names.is_leftover(relative, folder);
    if (is_leftover && (folder ? holds_nothing_else(run, names, relative) : !is_proposal(entry->path())))
      found.push_back(relative);
    const bool is_waiting = relative == replaced_name || relative == publishing_name;
    if (folder && !is_leftover && !is_waiting && names.is_ours(relative, true))
      add_leftovers(run, relative, names, found);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    fail_runtime("cannot read {}: {}", (run / inside).string(), error.message());
}

}  // namespace

std::vector<fs::path> leftovers(const fs::path& run, const RunNames& names, const fs::path& inside) {
  std::vector<fs::path> found;
  add_leftovers(run, inside, names, found);
  return found;
}

std::optional<fs::path> foreign_entry_of_the_life(const fs::path& run, const RunNames& names) {
  for (const std::string_view name : of_the_life) {
    const fs::file_status status = fs::symlink_status(run / name);
    if (!fs::exists(status)) continue;
    if (!fs::is_directory(status)) return run / name;
    if (auto foreign = foreign_entry(run, names, name)) return foreign;
  }
  return std::nullopt;
}

std::optional<fs::path> foreign_entry(const fs::path& run, const RunNames& names, const fs::path& inside) {
  for (const auto& entry : fs::recursive_directory_iterator(run / inside))
    if (!names.is_ours(entry.path().lexically_relative(run), is_folder(entry))) return entry.path();
  return std::nullopt;
}

std::vector<fs::path> our_entries(const fs::path& run, const RunNames& names) {
  std::vector<fs::path> found;
  add_our_entries(run, {}, names, found);
  return found;
}

std::optional<fs::path> linked_entry(const fs::path& folder, const RunNames& names) {
  for (auto entry = fs::recursive_directory_iterator(folder); entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path relative = entry->path().lexically_relative(folder);
    if (entry->is_symlink() && (names.is_ours(relative, false) || names.is_ours(relative, true))) return entry->path();
    if (!names.is_ours(relative, true)) entry.disable_recursion_pending();
  }
  return std::nullopt;
}

}  // namespace headscope
