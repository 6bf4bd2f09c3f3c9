#include "plasticity/run.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/interrupt.h"
#include "core/json_text.h"
#include "figures/theme.h"
#include "formats/journal.h"
#include "plasticity/plasticity_figures.h"
#include "plasticity/tables.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* journal_name = "finished_heads.journal";

// The formulas, for the manifest.
ordered_json definitions(Variant variant) {
  if (variant == Variant::diagonal)
    return {{"cell", "mean over pairs of 4 p (1 - p), p = Phi(m / sqrt(v)), diagonal residual variance of all queries"},
            {"head", "plain mean over non-empty cells"}};
  return {
      {"cell", "mean over pairs of 4 p (1 - p), p = Phi(m / sqrt(v)), full semantic covariance of the query bucket"},
      {"head", "mean over non-empty cells, weight = number of queries in the query bucket"}};
}

// What figures say of a run: the model, where it was captured in the run, otherwise run and data. The folder of the
// data that a run makes says nothing.
std::string title_of(const fs::path& run, const ordered_json& config, const std::string& rope) {
  const std::string folder = text_at(config, "model_dir");
  const std::string title = config.contains(capture_key) ? text_at(config[capture_key], "title")
                                                         : run_title(run, folder == own_data_name ? "" : folder);
  return rope == "before" || rope == "after" ? fmt::format("{}, {} RoPE", title, rope) : title;
}

// The options with what the dataset decides: the configuration file of the run gives the same run again.
PlasticityOptions resolved(PlasticityOptions options, const Dataset& dataset) {
  const fs::path root = absolute_folder(dataset.root);
  options.dataset_local_root = root.parent_path().string();
  options.model_dir = root.filename().string();
  options.num_layers = dataset.num_layers;
  options.num_q_heads = dataset.num_q_heads;
  options.num_k_heads = dataset.num_k_heads;
  return options;
}

ordered_json config_of(const PlasticityJob& job, const PlasticityOptions& options) {
  ordered_json config = to_json(options);
  if (!job.model) return config;
  config[capture_key] = job.model->config;
  config[capture_key]["title"] = job.model->title;
  return config;
}

RunDescription description(const PlasticityJob& job, const PlasticityOptions& options, const Dataset& dataset) {
  return {
      .command = plasticity_command,
      .config = config_of(job, options),
      .facts = {{"variant", json_value(options.variant)},
                {"rope", dataset.rope},
                {"definitions", definitions(options.variant)},
                {heads_from, job.options.num_layers && job.options.num_q_heads ? heads_from_configuration : "files"},
                {"device", "cpu"}},
      .writes = RunWrites::as_it_goes,
      .free_keys = {"dataset_local_root", "max_workers"},
      .inputs = job.demo || job.model ? std::vector<fs::path>() : std::vector{dataset.root}};
}

// The data of the job, which a run may have yet to make.
Dataset dataset_of(const PlasticityJob& job) {
  const fs::path own = job.folder.out / own_data_name;
  if (job.demo) return demo_dataset(own);
  if (!job.model) return open_dataset(job.data, job.options);
  Dataset dataset = dataset_of_model(own, job.model->layers, job.model->q_heads, job.model->k_heads, job.options);
  dataset.rope = job.model->rope;
  return dataset;
}

// Of little text a capture may keep no row of a head.
void leave_out_missing(Dataset& dataset) {
  std::erase_if(dataset.heads, [&](const HeadId& head) {
    std::error_code ignored;
    const bool there = fs::exists(dataset.query_file(head), ignored) && fs::exists(dataset.key_file(head), ignored);
    if (!there) dataset.missing.push_back(head.name() + "q");
    return !there;
  });
  if (dataset.heads.empty())
    fail_input("{}: no head has both queries and keys; give more text, or a larger --base-rate", dataset.root.string());
}

// Computes the heads that the journal does not hold, and adds each to the journal when it is finished.
PlasticityResult compute_with_journal(const PlasticityJob& job, const PlasticityOptions& options,
                                      const Dataset& dataset, const RunFolder& folder, Console& console) {
  Journal journal(folder.place() / journal_name);
  std::vector<HeadResult> finished;
  for (const std::string& record : journal.records()) finished.push_back(from_record(record));
  std::optional<Progress> progress;
  PlasticityObserver observer;
  observer.started = [&](std::size_t left) {
    progress.emplace(console, "plasticity", "heads", dataset.heads.size(), dataset.heads.size() - left);
  };
  observer.before_head = [&] {
    if (interrupt_requested())
      throw Error(Fault::interrupted, "interrupted; " + resume_hint(plasticity_command, folder.path()));
  };
  observer.finished = [&](const HeadResult& head) {
    journal.append(to_record(head));
    progress->step();
  };
  observer.failed = [&](const HeadFailure& failure) {
    if (job.fail_fast) throw Error(Fault::runtime, fmt::format("{}: {}", failure.id.name(), failure.message));
    progress->step();
  };
  return compute_plasticity(options, dataset, observer, std::move(finished));
}

// What was read. A file counts once: several heads can read one key file.
struct InputFiles {
  ordered_json hashes = ordered_json::object();
  std::map<std::string, std::int64_t> dropped;  // vectors with NaN or infinity; files without any are not there
  std::int64_t total_dropped = 0;
};

InputFiles input_files(const PlasticityResult& result, const Dataset& dataset) {
  InputFiles files;
  const auto add_file = [&](const fs::path& file, const std::string& hash, std::int64_t dropped_here) {
    files.hashes[file.string()] = hash;
    if (dropped_here > 0) files.dropped[file.string()] = dropped_here;
  };
  for (const HeadResult& head : result.heads) {
    add_file(dataset.query_file(head.id), head.q_hash, head.q_dropped);
    add_file(dataset.key_file(head.id), head.k_hash, head.k_dropped);
  }
  for (const auto& [file, count] : files.dropped) files.total_dropped += count;
  return files;
}

ordered_json manifest_entries(const PlasticityOutcome& outcome, const InputFiles& files) {
  return {{"heads", outcome.result.heads.size()},
          {"failed", failures_json(outcome.result)},
          {"dropped_nonfinite", files.total_dropped},
          {"dropped_nonfinite_by_file", files.dropped},
          {"seconds", outcome.seconds},
          {"stages", stages_json(outcome.result)},
          {"inputs_xxh3_128", files.hashes}};
}

// A reason once, with the first head that has it.
void warn_about_failures(const std::vector<HeadFailure>& failures, Console& console) {
  std::set<std::string> said;
  for (const HeadFailure& failure : failures) {
    if (!said.insert(failure.reason).second) continue;
    const auto same = std::ranges::count(failures, failure.reason, &HeadFailure::reason);
    console.warn(fmt::format("{}: {}{}", failure.id.name(), failure.message,
                             same > 1 ? fmt::format(" (the same for {} more)", same - 1) : ""));
  }
}

// So few queries make a value too small (docs/plasticity.md).
void warn_about_small_cells(const std::vector<HeadResult>& heads, Console& console) {
  constexpr std::int64_t least = 10;
  std::size_t small = 0, all = 0;
  const HeadResult* head_of_smallest = nullptr;
  const CellResult* smallest = nullptr;
  for (const HeadResult& head : heads)
    for (const CellResult& cell : head.cells) {
      if (cell.n_pairs == 0) continue;
      ++all;
      if (cell.n_queries >= least) continue;
      ++small;
      if (smallest != nullptr && smallest->n_queries <= cell.n_queries) continue;
      smallest = &cell;
      head_of_smallest = &head;
    }
  if (small > 0)
    console.warn(
        fmt::format("{} of {} cells have fewer than {} queries (bucket {} of {}: {}): their values are too small",
                    small, all, least, smallest->q_bucket, head_of_smallest->id.name(), smallest->n_queries));
}

void warn_about(const PlasticityResult& result, const Dataset& dataset, const InputFiles& files, Console& console) {
  const auto& heads = result.heads;
  if (!dataset.missing.empty())
    console.warn(fmt::format("{} of {} query heads are not there (first: {})", dataset.missing.size(),
                             dataset.num_layers * dataset.num_q_heads, dataset.missing.front()));
  if (!heads.empty() && !range_of(heads))
    console.warn(
        "no head has a plasticity: no bucket of keys before a bucket of queries holds two keys of one text (columns "
        "example_id, position and bucket say which)");
  warn_about_small_cells(heads, console);
  const auto few = std::ranges::count_if(heads, [](const HeadResult& head) { return head.n_q_tokens < 4 * head.dim; });
  if (few > 0)
    console.warn(
        fmt::format("{} of {} heads have few queries for their dimensions (the first head: {} of {}): values are too "
                    "small and rest on "
                    "little; capture more text, or with a larger --base-rate",
                    few, heads.size(), heads.front().n_q_tokens, heads.front().dim));
  if (!heads.empty()) warn_about_failures(result.failures, console);  // otherwise they are the error itself
  const auto is_constant = [](const HeadResult& head) { return !head.constant_components.empty(); };
  const auto first = std::find_if(heads.begin(), heads.end(), is_constant);
  if (first != heads.end())
    console.warn(
        fmt::format("{} of {} heads have constant query components (first: {}, component {}); their R² is 1 by "
                    "definition and dominates the component weights",
                    std::count_if(first, heads.end(), is_constant), heads.size(), first->id.name(),
                    first->constant_components.front()));
  if (!files.dropped.empty())
    console.warn(
        fmt::format("{} vectors with NaN or infinity were left out, in {} files (first: {}; all in manifest.json)",
                    files.total_dropped, files.dropped.size(), files.dropped.begin()->first));
}

HeadId head_of_row(const Table& table, std::size_t row) {
  return {table.integers("layer")[row], table.integers("q_head")[row], table.integers("k_head")[row]};
}

// What makes two runs measure something else: "rope: after, before".
std::vector<std::string> settings_that_differ(const ordered_json& one, const ordered_json& other) {
  std::vector<std::string> differ;
  const auto compare = [&](const std::string& name, const std::string& a, const std::string& b) {
    if (a != b)
      differ.push_back(fmt::format("{}: {}, {}", name, a.empty() ? "not known" : a, b.empty() ? "not known" : b));
  };
  compare("rope", text_at(one, "rope"), text_at(other, "rope"));
  compare("variant", text_at(one, "variant"), text_at(other, "variant"));
  const auto captured = [](const ordered_json& manifest, const char* key) {
    const auto found = manifest.at("config").find(capture_key);
    if (found == manifest.at("config").end() || !found->contains(key)) return std::string();
    const ordered_json& value = (*found)[key];
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const char* key : {"title", "sampler", "bucket_size", "base_rate", "max_length"})
    compare(key, captured(one, key), captured(other, key));
  return differ;
}

ComparedRun read_compared_run(const fs::path& folder) {
  const ordered_json manifest = read_manifest(folder);
  const std::string command = text_at(manifest, "command"), status = text_at(manifest, "status");
  if (command != plasticity_command)
    fail_input("{}: is a run of '{}'; expected one of 'plasticity'", folder.string(), command);
  if (status != status_name(RunStatus::complete) && status != status_name(RunStatus::incomplete))
    fail_input("{}: the run is not finished (status {}); {}", folder.string(), status,
               resume_hint(plasticity_command, folder));
  ComparedRun run;
  run.name = absolute_folder(folder).filename().string();
  run.seed = manifest.at("config").value("seed", std::uint64_t{0});
  const Table heads = read_csv(folder / head_uncertainty_csv);
  const Numbers value = heads.numbers("ap_overall"), se_pairs = heads.numbers("se_pairs"),
                se_examples = heads.numbers("se_examples");
  for (std::size_t row = 0; row < heads.rows(); ++row) {
    HeadUncertainty& head = run.heads[head_of_row(heads, row)];
    head.overall = {value[row], se_pairs[row], se_examples[row]};
    head.examples_hash = heads.texts("examples_hash")[row];
  }
  const Table replicates = read_csv(folder / head_replicates_csv);
  const Numbers replicate = replicates.numbers("ap_overall");
  for (std::size_t row = 0; row < replicates.rows(); ++row)
    run.heads.at(head_of_row(replicates, row)).replicates.push_back(replicate[row]);
  return run;
}

}  // namespace

PlasticityOutcome run_plasticity(const PlasticityJob& job, Console& console) {
  const auto start = Clock::now();
  const InterruptGuard guard;
  validate(job.options);
  const Theme& theme = theme_named(job.theme);  // an unknown name is refused before the work, not after it
  check_out(job.folder, plasticity_command, RunWrites::as_it_goes);
  Dataset dataset = dataset_of(job);
  const PlasticityOptions options = resolved(job.options, dataset);
  RunFolder folder(job.folder, description(job, options, dataset));
  const auto remove_journal = [&] {
    std::error_code ignored;  // the run is complete with it, too
    fs::remove(folder.path() / journal_name, ignored);
  };
  PlasticityOutcome outcome;
  outcome.out = folder.path();
  outcome.already_complete = folder.already_complete();
  outcome.has_figures = job.figures;
  outcome.rope = dataset.rope;
  if (outcome.already_complete) {
    remove_journal();  // a kill right after the last manifest leaves it
    return outcome;
  }

  folder.live([&] {
    if (job.demo) write_demo(dataset, options);
    if (job.model) {
      job.model->capture(dataset.root, resume_hint(plasticity_command, folder.path()));
      leave_out_missing(dataset);
    }
    outcome.result = compute_with_journal(job, options, dataset, folder, console);
    const PlasticityResult& result = outcome.result;
    timed(outcome.result.times, Stage::write, [&] { write_plasticity(result, folder); });
    const fs::path plots = folder.place() / plots_name;
    if (job.figures && !result.heads.empty())
      draw_or_warn(
          folder.path(), resume_hint(plasticity_command, folder.path()), console,
          [&] {
            const PlasticityTables tables =
                figure_tables(result, title_of(folder.path(), config_of(job, options), dataset.rope));
            draw(plasticity_figures(tables, {job.per_head_figures}), plots, theme);
          },
          [&] { return folder.is_ours(); });
    if (job.demo) outcome.demo = compare_with_truth(result);
    outcome.seconds = seconds_since(start);
    const InputFiles files = input_files(result, dataset);
    warn_about(result, dataset, files, console);
    const bool complete = result.failures.empty();
    folder.finish(complete ? RunStatus::complete : RunStatus::incomplete, manifest_entries(outcome, files));
    if (complete) remove_journal();
  });
  return outcome;
}

std::string failures_text(const PlasticityOutcome& outcome) {
  const auto& [options, heads, failures, times] = outcome.result;
  const std::string hint = resume_hint(plasticity_command, outcome.out);
  if (!heads.empty()) {
    std::vector<std::string> names;
    for (const HeadFailure& failure : failures) names.push_back(failure.id.name());
    return fmt::format("{} of {} heads could not be analysed: {}; mend their files and {}", names.size(),
                       names.size() + heads.size(), fmt::join(names, ", "), hint);
  }
  const auto others = failures.size() -
                      static_cast<std::size_t>(std::ranges::count(failures, failures[0].reason, &HeadFailure::reason));
  const std::string rest = failures.size() == 1 ? ""
                           : others == 0        ? " (the same for every head)"
                                                : fmt::format(" ({} heads fail otherwise: see manifest.json)", others);
  return fmt::format("none of the {} heads could be analysed, so there are no tables: {}{}; mend the files and {}",
                     failures.size(), failures[0].message, rest, hint);
}

ordered_json failures_json(const PlasticityResult& result) {
  ordered_json failed = ordered_json::array();
  for (const HeadFailure& failure : result.failures)
    failed.push_back({{"head", failure.id.name()}, {"message", failure.message}});
  return failed;
}

ordered_json stages_json(const PlasticityResult& result) {
  ordered_json stages;
  for (std::size_t stage = 0; stage < StageTimes::names.size(); ++stage)
    stages[std::string(StageTimes::names[stage])] = result.times.seconds(stage);
  return stages;
}

CompareOutcome run_comparison(const CompareJob& job) {
  const Theme theme = theme_named(job.theme);
  const ComparedRun run_1 = read_compared_run(job.run_1), run_2 = read_compared_run(job.run_2);
  CompareOutcome outcome;
  outcome.differ = settings_that_differ(read_manifest(job.run_1), read_manifest(job.run_2));
  outcome.comparison = compare(run_1, run_2);
  const Comparison& comparison = outcome.comparison;
  if (comparison.heads.empty()) fail_input("{} and {} have no head in common", job.run_1.string(), job.run_2.string());
  const ordered_json config = {{"run_1", job.run_1.string()},
                               {"run_2", job.run_2.string()},
                               {"name_1", comparison.name_1},
                               {"name_2", comparison.name_2}};
  RunFolder folder(job.folder, {compare_command, config, {{"device", "cpu"}}});
  outcome.out = folder.path();
  if (folder.already_complete()) return outcome;
  folder.live([&] {
    write_comparison(comparison, folder);
    draw(comparison_figures(figure_tables(comparison)), folder.place() / plots_name, theme);
    folder.finish(RunStatus::complete, {{"heads", comparison.heads.size()}, {"only_in_one", comparison.only_in_one}});
  });
  return outcome;
}

std::vector<fs::path> draw_plasticity_run(const fs::path& run, const fs::path& out, const std::string& theme,
                                          bool per_head) {
  const ordered_json manifest = read_manifest(run);
  const auto table = [&](const char* key) {
    const std::string name = text_at(manifest["config"], key);
    if (!is_plain_csv_name(name))
      fail_input("{}: is damaged: 'config.{}' is not the name of a table", (run / manifest_name).string(), key);
    return read_csv(run / name);
  };
  PlasticityTables tables;
  tables.heads = table("output_csv");
  tables.cells = table("bucket_csv");
  tables.components = table("component_csv");
  tables.title = title_of(run, manifest["config"], text_at(manifest, "rope"));
  if (fs::exists(run / head_uncertainty_csv)) tables.uncertainty = read_csv(run / head_uncertainty_csv);
  if (fs::exists(run / cell_uncertainty_csv)) tables.cell_sizes = read_csv(run / cell_uncertainty_csv);
  if (fs::exists(run / head_checks_csv)) tables.checks = read_csv(run / head_checks_csv);
  return draw(plasticity_figures(tables, {per_head}), out / plots_name, theme_named(theme)).files;
}

std::vector<fs::path> draw_comparison_run(const fs::path& run, const fs::path& out, const std::string& theme) {
  const ordered_json config = read_manifest(run).value("config", ordered_json::object());
  const PlasticityComparison comparison{read_csv(run / comparison_csv), text_at(config, "name_1"),
                                        text_at(config, "name_2")};
  return draw(comparison_figures(comparison), out / plots_name, theme_named(theme)).files;
}

}  // namespace headscope
