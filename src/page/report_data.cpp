#include "page/report_data.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "formats/parquet_table.h"
#include "formats/part_table.h"
#include "heads/inspection.h"
#include "heads/ranking.h"
#include "heads/roles/run.h"
#include "heads/summary.h"
#include "heads/surgery.h"
#include "page/answers.h"
#include "page/attention.h"
#include "page/other_runs.h"
#include "plasticity/run.h"
#include "run/manifest.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* tables_of_a_training[] = {heads_table, gamma_table, steps_table, probes_table};
constexpr double most_entropy = 100;  // nats; that of a vocabulary of 2^24 is 17
constexpr const char* summary_name = "summary.json";
constexpr std::size_t most_json_bytes = std::size_t{64} << 20;  // of summary.json and the like

// The parts of the tables of a training, by name and inode: they change when a process that writes the run merges them.
std::string parts_now(const fs::path& place) {
  std::string names;
  for (const char* table : tables_of_a_training) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(part_folder(place / table), error)) {
      struct stat status {};
      if (::stat(entry.path().c_str(), &status) == 0)
        names += fmt::format("{} {}\n", entry.path().string(), status.st_ino);
    }
  }
  return names;
}

// Reads again where the parts were merged meanwhile: a file that was listed may be gone when it is opened.
template <class Body>
auto reading_parts(const fs::path& place, Body&& body) {
  constexpr int most_tries = 5;
  for (int attempt = 1;; ++attempt) {
    const std::string before = parts_now(place);
    try {
      return body();
    } catch (const Error&) {
      if (attempt == most_tries || before == parts_now(place)) throw;
    }
  }
}

bool has_table(const fs::path& place, const char* table) {
  std::error_code error;
  const fs::path parts = part_folder(place / table);
  return fs::is_directory(parts, error) && !fs::is_empty(parts, error);
}

// A page has float32; what does not fit is missing.
double shown(double value) {
  return std::abs(value) <= std::numeric_limits<float>::max() ? value : missing;
}

std::vector<StepRow> read_steps(const fs::path& place) {
  std::vector<StepRow> rows;
  scan_parquet(place / steps_table, {"step", "tokens", "loss", "lr", "adamw_lr", "grad_norm", "tokens_per_s"},
               [&](const Table& table) {
                 const Integers &step = table.integers("step"), &tokens = table.integers("tokens");
                 const Numbers loss = table.numbers("loss"), lr = table.numbers("lr"),
                               adamw_lr = table.numbers("adamw_lr"), grad_norm = table.numbers("grad_norm"),
                               speed = table.numbers("tokens_per_s");
                 for (std::size_t i = 0; i < table.rows(); ++i) {
                   const Moment moment{step[i], tokens[i]};
                   check_next_moment(place / steps_table, rows.size(), moment,
                                     rows.empty() ? std::nullopt : std::optional(rows.back().moment));
                   rows.push_back({moment, shown(loss[i]), shown(lr[i]), shown(adamw_lr[i]), shown(grad_norm[i]),
                                   shown(speed[i])});
                 }
               });
  return rows;
}

std::optional<std::int64_t> whole_number(const ordered_json& value) {
  const bool fits = value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() >> 63 == 0);
  return fits ? std::optional(value.get<std::int64_t>()) : std::nullopt;
}

// An object; null where the file is absent, and with a note where it cannot be read or is damaged: a page can do
// without.
ordered_json optional_json(const fs::path& file, std::vector<std::string>& notes) {
  std::error_code error;
  if (!fs::exists(file, error)) return nullptr;
  try {
    ordered_json value = parse_json(read_file(file, most_json_bytes));
    if (value.is_object()) return value;
    notes.push_back(fmt::format("{}: is damaged and left out", file.string()));
  } catch (const Error& problem) {
    notes.push_back(fmt::format("{}; it is left out", problem.what()));
  }
  return nullptr;
}

void add_events(const fs::path& place, ReportRun& run) {
  std::error_code error;
  run.progress = read_progress(place);
  if (!run.progress && fs::exists(place / progress_name, error))
    run.notes.push_back(fmt::format("{}: is damaged and left out", (place / progress_name).string()));
  std::size_t damaged = 0;
  try {
    run.events = read_events(place, &damaged);
  } catch (const Error& problem) {
    run.notes.push_back(fmt::format("{}; it is left out", problem.what()));
  }
  if (damaged > 0)
    run.notes.push_back(fmt::format("{}: {} line{} no event{} and left out", (place / events_name).string(), damaged,
                                    damaged == 1 ? " is" : "s are", damaged == 1 ? "" : "s"));
  if (run.events.size() <= most_events) return;
  run.events_left_out = run.events.size() - most_events;
  run.events.erase(run.events.begin(), run.events.end() - most_events);
}

void add_roles(const fs::path& place, const RunFacts& facts, ReportRun& run) {
  std::optional<RolesResult> roles;
  try {
    roles = read_roles(run.tracks, facts, place);
  } catch (const Error& error) {
    run.notes.push_back(error.what());
    return;
  }
  if (!roles) return;
  const Tracks& tracks = roles_source(run.tracks, roles->source == "train");
  RoleCourse course{std::move(*roles), {}};
  const RoleDefinition& definition = course.roles.definition;
  for (const std::size_t moment : comparable_moments(tracks, definition)) {
    MomentLabels labels{tracks.moments[moment], {}};
    for (const HeadRole& head : roles_at(tracks, moment, definition, facts.d_k)) labels.labels.push_back(head.label);
    course.labels.push_back(std::move(labels));
  }
  run.roles = std::move(course);
}

// Answers of a run that has no summary yet are found now.
void add_answers(const fs::path& place, bool find_them, ReportRun& run) {
  ordered_json summary = optional_json(place / summary_name, run.notes);
  if (summary.is_null() && find_them && run.has_tracks()) summary = to_json(find(run.tracks));
  run.answers = answers_of(summary, run.counts());
  for (const std::string& question : damaged_answers(summary))
    run.notes.push_back(fmt::format("{}: '{}' is damaged and left out", (place / summary_name).string(), question));
}

// The heads that attention may be of: those that were measured, otherwise those of the model that the manifest
// describes, otherwise as many as a page can show.
HeadCounts counts_of_attention(const ReportRun& run) {
  constexpr std::int64_t most = 1024;
  const ordered_json config = run.manifest.is_object() ? run.manifest.value("config", ordered_json()) : ordered_json();
  const ordered_json model = config.is_object() ? config.value("model", ordered_json()) : ordered_json();
  const auto said = [&](const char* key) {
    const auto count = model.is_object() ? whole_number(model.value(key, ordered_json())) : std::nullopt;
    return count && *count > 0 && *count < most ? *count : most;
  };
  HeadCounts counts = run.tracks.finest().counts;
  if (counts.layers == 0) counts.layers = said("layers");
  if (counts.query_heads == 0) counts.query_heads = said("heads");
  return counts;
}

// What a folder with tables of a training holds.
void add_training(const fs::path& place, std::size_t most, bool find_answers, ReportRun& run) {
  const RunFacts facts = read_facts(place);
  run.d_k = facts.d_k;
  run.shape = read_batch_shape(place);
  reading_parts(place, [&] {
    run.tracks = has_table(place, heads_table) ? read_tracks(place, most) : RunTracks();
    run.steps = has_table(place, steps_table) ? step_buckets(read_steps(place)) : std::vector<StepBucket>();
    run.probes = has_table(place, probes_table) ? read_losses(place) : std::vector<ProbeLosses>();
    for (ProbeLosses& probe : run.probes) probe = {probe.moment, shown(probe.train), shown(probe.validation)};
  });
  std::error_code error;
  for (const char* name : tables_of_a_training)
    if (fs::exists(fs::symlink_status(place / name, error)) && !has_table(place, name))
      run.notes.push_back(fmt::format("{}: is no table; left out", (place / name).string()));
  if (run.d_k == 0)
    for (const LayerGains& gains : run.tracks.gains) run.d_k = static_cast<std::int64_t>(gains.k.size());
  if (run.has_tracks()) add_roles(place, facts, run);
  add_events(place, run);
  add_answers(place, find_answers, run);
  const HeadCounts counts = counts_of_attention(run);
  run.attention = read_attention(place, counts);
  run.examples = read_examples(place, counts);
}

// Runs of one seed and one shape began with the same weights; an inspection has the seed of the training of its
// checkpoint. Of a published model the weights themselves are known.
std::string same_heads_of(const ordered_json& manifest, const std::optional<std::int64_t>& seed) {
  const ordered_json config = manifest.value("config", ordered_json::object());
  const ordered_json model = config.value("model", ordered_json());
  if (!seed && manifest.value("seeds", ordered_json()).is_null()) {
    const std::string weights = text_at(manifest, "weights_xxh3_128");
    return weights.empty() ? "" : "weights " + weights;
  }
  if (!model.is_object() || !seed) return "";
  std::string key = fmt::format("seed {}", *seed);
  for (const char* part : {"vocabulary", "d_model", "layers", "heads", "kv_heads", "d_k", "d_ff", "init_std"})
    key += fmt::format(", {}", json_line(model.value(part, ordered_json())));
  return key;
}

// What the manifest says.
ReportRun described_run(std::string title, const ordered_json& manifest) {
  ReportRun run;
  run.name = std::move(title);
  run.command = text_at(manifest, "command");
  run.status = text_at(manifest, "status");
  run.started = text_at(manifest, "started");
  if (const std::string ended = text_at(manifest, "ended"); !ended.empty()) run.ended = ended;
  run.device = text_at(manifest, "device");
  if (const auto ranks = whole_number(manifest.value("ranks", ordered_json())); ranks && *ranks > 1)
    run.device += fmt::format(", {} ranks", *ranks);
  const ordered_json seeds = manifest.value("seeds", ordered_json());
  if (seeds.is_array() && seeds.size() == 1) run.seed = whole_number(seeds[0]);
  run.same_heads = same_heads_of(manifest, run.seed);
  const ordered_json entropy = manifest.value("entropy", ordered_json());
  if (entropy.is_object())
    for (const auto& [key, name] : {std::pair("unigram", "unigram entropy"), std::pair("true", "true entropy")})
      if (const ordered_json value = entropy.value(key, ordered_json());
          value.is_number() && value >= 0 && value <= most_entropy)
        run.levels.push_back({name, value.get<double>()});
  return run;
}

bool is_training_place(const fs::path& place) {
  std::error_code error;
  return has_table(place, heads_table) || has_table(place, steps_table) ||
         fs::is_regular_file(place / results_name, error);
}

// An inspection may hold these alone.
bool has_attention(const fs::path& place) {
  std::error_code error;
  return fs::is_regular_file(place / attention_name, error) || fs::is_regular_file(place / examples_name, error);
}

struct ConditionPlace {
  fs::path folder;
  std::string seed_name;  // "seed_42"; empty: the study has one
  std::string tag;
};

// [seed_N/]TAG with tables or results, in order.
std::vector<ConditionPlace> condition_places(const fs::path& study) {
  std::vector<ConditionPlace> places;
  const auto add = [&](const fs::path& folder, const std::string& seed) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory(error) && is_condition_tag(name) && is_training_place(entry.path()) &&
          !is_run(entry.path()))
        places.push_back({entry.path(), seed, name});
    }
  };
  add(study, "");
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(study, error))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("seed_") && entry.is_directory(error))
      add(entry.path(), name);
  return places;
}

// In the order of the study's conditions, then of the seeds.
void sort_places(std::vector<ConditionPlace>& places, const std::vector<Condition>& conditions) {
  const auto rank = [&](const ConditionPlace& place) {
    const auto found = std::ranges::find(conditions, place.tag, &Condition::tag);
    return std::tuple(found - conditions.begin(), place.tag, place.seed_name.size(), place.seed_name);
  };
  std::ranges::sort(places, {}, rank);
}

std::optional<std::int64_t> seed_of(const std::string& name) {
  std::int64_t seed = 0;
  return name.starts_with("seed_") && parse_value(name.substr(5), seed) ? std::optional(seed) : std::nullopt;
}

ReportRun condition_run(const ConditionPlace& place, const ordered_json& manifest,
                        const std::vector<Condition>& conditions, std::size_t most) {
  ReportRun run = described_run((place.seed_name.empty() ? "" : place.seed_name + "/") + place.tag, manifest);
  const auto known = std::ranges::find(conditions, place.tag, &Condition::tag);
  run.condition = known == conditions.end() ? Condition{place.tag, place.tag, place.tag, {}, {}} : *known;
  if (const auto seed = seed_of(place.seed_name)) run.seed = seed;
  run.same_heads = same_heads_of(manifest, run.seed);
  std::error_code error;
  if (fs::is_regular_file(place.folder / results_name, error)) run.status = status_name(RunStatus::complete);
  add_training(place.folder, most, /*find_answers=*/false, run);
  return run;
}

constexpr const char* tau_of_training = "/study/tau";

double tau_of(const ordered_json& manifest) {
  const ordered_json config =
      manifest.is_object() ? manifest.value("config", ordered_json::object()) : ordered_json::object();
  const ordered_json tau =
      config.value("tau", config.value(ordered_json::json_pointer(tau_of_training), ordered_json()));
  return tau.is_number() && tau.get<double>() > 0 ? tau.get<double>() : default_tau;
}

// Some condition of the study has them.
bool has_results(const fs::path& study) {
  return std::ranges::any_of(condition_places(study), [](const ConditionPlace& place) {
    std::error_code error;
    return fs::exists(place.folder / results_name, error);
  });
}

// The verdict on what is there; a note where there is none yet.
void add_study_result(const fs::path& folder, const ordered_json& manifest, const std::string& name, ReportData& data) {
  try {
    Study study = load_study({folder});
    StudyResult result = analyze(study, tau_of(manifest));
    for (const std::string& warning : result.warnings) data.notes.push_back(warning);
    data.studies.push_back({name, std::move(study), std::move(result)});
  } catch (const Error& error) {
    data.notes.push_back(has_results(folder) || !is_run(folder) ? fmt::format("no verdict: {}", error.what())
                                                                : "no verdict yet: no run of the study is complete");
  }
}

void add_study_run(const fs::path& folder, const ordered_json& manifest, ReportData& data) {
  std::vector<ConditionPlace> places = condition_places(folder);
  if (manifest.is_object()) add_study_result(folder, manifest, read_facts(folder).title, data);
  std::vector<std::string> tags;
  for (const ConditionPlace& place : places) tags.push_back(place.tag);
  const std::vector<Condition> conditions =
      data.studies.empty() ? conditions_with(tags) : conditions_of(data.studies.back().study);
  sort_places(places, conditions);
  for (const ConditionPlace& place : places) {
    if (!has_table(place.folder, heads_table) && !has_table(place.folder, steps_table)) continue;  // results alone
    ReportRun run = condition_run(place, manifest, conditions, data.most_moments);
    if (data.studies.size() > 1) run.name = folder.filename().string() + "/" + run.name;
    data.runs.push_back(std::move(run));
  }
}

void add_run(const fs::path& folder, ReportData& data) {
  const ordered_json manifest = read_manifest(folder);
  data.manifests.push_back(manifest);
  const std::string command = text_at(manifest, "command");
  if (command == study_command) return add_study_run(folder, manifest, data);
  ReportRun run = described_run(read_facts(folder).title, manifest);
  run.manifest = manifest;
  if (command == plasticity_command)
    add_plasticity_tables(folder, manifest, run);
  else if (command == compare_command)
    add_comparison_table(folder, manifest, run);
  else if (command == surgery_command)
    add_surgery_table(folder, run);
  else if (is_training_place(folder) || has_table(folder, probes_table) || has_attention(folder))
    add_training(folder, data.most_moments, /*find_answers=*/true, run);
  else if (run.status == status_name(RunStatus::complete))
    fail_input("{}: is a run of '{}', which has nothing that a page shows", folder.string(), command);
  data.runs.push_back(std::move(run));
}

// A condition of a study has no manifest of its own.
void add_condition(const fs::path& folder, const fs::path& around, ReportData& data) {
  const ordered_json manifest = read_manifest(around);
  data.manifests.push_back(manifest);
  const std::string parent = folder.parent_path().filename().string(), tag = folder.filename().string();
  const ConditionPlace place{folder, parent.starts_with("seed_") ? parent : "", tag};
  ReportRun run = condition_run(place, manifest, conditions_with({tag}), data.most_moments);
  add_answers(folder, /*find_them=*/true, run);
  run.name = read_facts(folder).title;
  data.runs.push_back(std::move(run));
}

void add_folder(const fs::path& given, ReportData& data) {
  const fs::path folder = absolute_folder(given);
  std::error_code error;
  if (!fs::exists(folder, error)) fail_input("{}: is not there", given.string());
  if (!fs::is_directory(folder, error)) fail_input("{}: is a file; give the folder of a run", given.string());
  if (is_run(folder)) return add_run(folder, data);
  if (const fs::path around = run_around(folder); !around.empty() && is_training_place(folder))
    return add_condition(folder, around, data);
  if (condition_places(folder).empty()) read_manifest(folder);  // says that it is no run
  const std::size_t before = data.studies.size();
  add_study_result(folder, nullptr, folder.filename().string(), data);
  if (data.studies.size() == before) fail_input("{}: {}", given.string(), data.notes.back());
}

// Which run a folder holds.
struct RunInPlace {
  std::string which;         // empty: none
  bool is_replaced = false;  // another one is taking its place (run/replacement.h)
};

RunInPlace run_in_place(const fs::path& folder) {
  const fs::path root = run_around(folder);
  if (root.empty()) return {};
  std::error_code error;
  const bool moves =
      fs::exists(root / publishing_name, error) ||
      (fs::exists(root / replaced_name, error) &&
       (!fs::exists(root / manifest_name, error) || !fs::exists(root / replaced_name / manifest_name, error)));
  try {
    const ordered_json manifest = read_manifest(root);
    return {text_at(manifest, "started") + " " + text_at(manifest, "command_line"), moves};
  } catch (const Error&) {
    return {"", moves};
  }
}

// Reads again where another run took the place of the one that is read: a page must not mix them.
void add_one_run(const fs::path& folder, ReportData& data) {
  constexpr int most_tries = 5;
  constexpr auto pause = std::chrono::milliseconds(100);  // files are renamed in less
  const std::size_t runs = data.runs.size(), studies = data.studies.size(), manifests = data.manifests.size(),
                    notes = data.notes.size();
  for (int attempt = 1;; ++attempt) {
    const RunInPlace before = run_in_place(folder);
    const auto is_the_same = [&] {
      const RunInPlace after = run_in_place(folder);
      return !before.is_replaced && !after.is_replaced && before.which == after.which;
    };
    try {
      add_folder(folder, data);
      if (is_the_same()) return;
    } catch (const Error&) {
      if (is_the_same()) throw;
    }
    if (attempt == most_tries)
      fail_input(
          "{}: another run takes its place; try again. If no process writes it, one was killed: the next command that "
          "writes to this folder repairs it",
          folder.string());
    data.runs.resize(runs);
    data.studies.resize(studies);
    data.manifests.resize(manifests);
    data.notes.resize(notes);
    std::this_thread::sleep_for(pause);
  }
}

// Studies that were named together are one, where they can be: more seeds, or other conditions of the same seeds.
void join_studies(const std::vector<fs::path>& folders, ReportData& data) {
  if (data.studies.size() < 2 || data.studies.size() != folders.size()) return;
  const double tau = data.studies.front().result.verdict.tau;
  for (const ReportStudy& study : data.studies)
    if (study.result.verdict.tau != tau) return;
  try {
    Study study = load_study(folders);
    StudyResult result = analyze(study, tau);
    for (const std::string& warning : result.warnings)
      if (std::ranges::find(data.notes, warning) == data.notes.end()) data.notes.push_back(warning);
    data.studies = {{data.studies.front().name, std::move(study), std::move(result)}};
  } catch (const Error& error) {  // runs of different depth, or the same condition of the same seed twice
    data.notes.push_back(fmt::format("each study has its own verdict, and the page shows the first: {}", error.what()));
  }
}

}  // namespace

HeadCounts ReportRun::counts() const {
  HeadCounts counts = tracks.finest().counts;
  if (has_tracks()) return counts;
  const auto see = [&](const auto& one) {
    counts.layers = std::max(counts.layers, one.layer + 1);
    counts.query_heads = std::max(counts.query_heads, one.head + 1);
  };
  std::ranges::for_each(attention.heads, see);
  std::ranges::for_each(examples, see);
  return counts;
}

std::vector<StepBucket> step_buckets(const std::vector<StepRow>& steps, std::size_t most) {
  const std::size_t n = std::min(most, steps.size());
  std::vector<StepBucket> buckets;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t first = i * steps.size() / n, end = (i + 1) * steps.size() / n;
    StepBucket bucket{steps[end - 1]};
    for (std::size_t row = first; row < end; ++row) {
      const double loss = steps[row].loss;
      if (!std::isfinite(loss)) continue;
      bucket.loss_min = std::isnan(bucket.loss_min) ? loss : std::min(bucket.loss_min, loss);
      bucket.loss_max = std::isnan(bucket.loss_max) ? loss : std::max(bucket.loss_max, loss);
    }
    buckets.push_back(bucket);
  }
  return buckets;
}

ReportData read_report(const std::vector<fs::path>& folders, std::size_t most) {
  ReportData data;
  data.most_moments = most;
  std::set<fs::path> seen;
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path real = fs::weakly_canonical(folder, error);
    if (!seen.insert(real).second) fail_input("{}: is named twice", folder.string());
    add_one_run(folder, data);
  }
  join_studies(folders, data);
  Baselines baselines;
  for (ReportRun& run : data.runs)
    if (run.has_tracks())
      run.metric_levels = levels_of(run.shape, run.roles ? &run.roles->roles.definition : nullptr, baselines);
  for (const ReportRun& run : data.runs) data.notes.insert(data.notes.end(), run.notes.begin(), run.notes.end());
  const auto shows_something = [](const ReportRun& run) {
    return run.has_tracks() || !run.steps.empty() || !run.probes.empty() || !run.answers.empty() ||
           !run.tables.empty() || run.has_attention();
  };
  if (data.studies.empty() && std::ranges::none_of(data.runs, shows_something))
    fail_input("{}: has nothing to show yet; wait for the run's first tables", folders.front().string());
  data.title = !data.studies.empty() ? data.studies.front().name : data.runs.front().name;
  if (folders.size() > 1) data.title += fmt::format(" and {} more", folders.size() - 1);
  return data;
}

}  // namespace headscope
