#include "plasticity/run.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <numeric>

#include "core/interrupt.h"
#include "core/json_text.h"
#include "core/parallel.h"
#include "figures/draw_or_warn.h"
#include "formats/journal.h"
#include "plasticity/demo.h"
#include "plasticity/plasticity_figures.h"
#include "plasticity/tables.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* journal_name = "finished_heads.journal";
constexpr const char* demo_data_name = "data";

// Keys that several query heads share: read by the first that asks, freed by the last that is done.
class SharedKeys {
 public:
  SharedKeys(const Dataset& dataset, const PlasticityOptions& options, StageTimes& times)
      : dataset_(dataset), options_(options), times_(times) {}

  void announce(const HeadId& head) { ++entries_[{head.layer, head.k_head}].users; }

  // Waits while another worker reads the same file. A file that cannot be read fails every head that needs it.
  std::shared_ptr<const Keys> get(const HeadId& head) {
    Entry& entry = entries_.at({head.layer, head.k_head});
    const std::scoped_lock lock(entry.mutex);
    if (entry.error) throw Error(*entry.error);
    if (!entry.keys) {
      try {
        entry.keys = load(head);
      } catch (const Error& error) {
        entry.error = error;
        throw;
      }
    }
    return entry.keys;
  }

  void done_with(const HeadId& head) {
    Entry& entry = entries_.at({head.layer, head.k_head});
    const std::scoped_lock lock(entry.mutex);
    if (--entry.users == 0) entry.keys.reset();
  }

 private:
  struct Entry {
    std::mutex mutex;
    std::size_t users = 0;
    std::shared_ptr<const Keys> keys;
    std::optional<Error> error;
  };

  std::shared_ptr<const Keys> load(const HeadId& head) {
    const StageTimer timer(times_, Stage::read);
    CapturedVectors captured = read_captured_vectors(dataset_.key_file(head), {options_.drop_nonfinite});
    return std::make_shared<const Keys>(prepare_keys(std::move(captured), options_.max_tokens_per_head, options_.seed));
  }

  const Dataset& dataset_;
  const PlasticityOptions& options_;
  StageTimes& times_;
  std::map<std::pair<std::int64_t, std::int64_t>, Entry> entries_;
};

CapturedVectors read_queries(const Dataset& dataset, const HeadId& head, const PlasticityOptions& options,
                             StageTimes& times) {
  const StageTimer timer(times, Stage::read);
  return read_captured_vectors(dataset.query_file(head), {options.drop_nonfinite});
}

HeadResult analyse(const Dataset& dataset, const HeadId& head, const PlasticityOptions& options, SharedKeys& shared,
                   StageTimes& times) {
  const CapturedVectors queries = read_queries(dataset, head, options, times);
  const std::shared_ptr<const Keys> keys = shared.get(head);
  if (queries.dim != keys->captured.dim)
    fail_input("{}: vectors have dimension {}, those of {} have {}; expected the same",
               dataset.query_file(head).string(), queries.dim, dataset.key_file(head).string(), keys->captured.dim);
  return analyse_head(head, queries, *keys, options, times);
}

// The heads in an order in which workers that start together read different key files: one that needs the file that
// another is reading would wait for it. At most `workers` key files are then in memory.
std::vector<HeadId> spread_over_keys(const std::vector<HeadId>& heads, std::size_t workers) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<HeadId>> by_key;
  for (const HeadId& head : heads) by_key[{head.layer, head.k_head}].push_back(head);
  std::vector<HeadId> order;
  for (auto first = by_key.begin(); first != by_key.end();) {
    auto last = first;
    std::size_t longest = 0;
    for (std::size_t taken = 0; taken < workers && last != by_key.end(); ++taken, ++last)
      longest = std::max(longest, last->second.size());
    for (std::size_t round = 0; round < longest; ++round)
      for (auto group = first; group != last; ++group)
        if (round < group->second.size()) order.push_back(group->second[round]);
    first = last;
  }
  return order;
}

// Analyses what is left, keeps every finished head in the journal, and collects failures by name.
class HeadLoop {
 public:
  HeadLoop(const PlasticityJob& job, const Dataset& dataset, Journal& journal, StageTimes& times, Console& console)
      : job_(job), dataset_(dataset), journal_(journal), times_(times), console_(console) {
    for (const std::string& record : journal.records()) results_.push_back(from_record(record));
  }

  void run() {
    std::vector<HeadId> left = dataset_.heads;
    std::erase_if(left, [&](const HeadId& head) {
      return std::any_of(results_.begin(), results_.end(), [&](const HeadResult& done) { return done.id == head; });
    });
    const auto workers =
        job_.options.max_workers ? static_cast<std::size_t>(*job_.options.max_workers) : available_cores();
    left = spread_over_keys(left, workers);
    SharedKeys shared(dataset_, job_.options, times_);
    for (const HeadId& head : left) shared.announce(head);
    Progress progress(console_, "plasticity", "heads", dataset_.heads.size(), dataset_.heads.size() - left.size());
    parallel_for(left.size(), workers, [&](std::size_t index) {
      if (interrupt_requested())
        throw Error(Fault::interrupted,
                    fmt::format("interrupted; go on with --resume --out {}", job_.folder.out.string()));
      one_head(left[index], shared);
      shared.done_with(left[index]);
      progress.step();
    });
  }

  std::vector<HeadResult> results() && {
    std::sort(results_.begin(), results_.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    return std::move(results_);
  }
  std::vector<HeadFailure> failures() && {
    std::sort(failures_.begin(), failures_.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
    return std::move(failures_);
  }

 private:
  void one_head(const HeadId& head, SharedKeys& shared) {
    try {
      HeadResult result = analyse(dataset_, head, job_.options, shared, times_);
      const StageTimer timer(times_, Stage::write);
      journal_.append(to_record(result));
      const std::scoped_lock lock(mutex_);
      results_.push_back(std::move(result));
    } catch (const Error& error) {
      if (error.fault() != Fault::input) throw;
      if (job_.fail_fast) throw Error(Fault::runtime, fmt::format("{}: {}", head.name(), error.what()));
      console_.warn(fmt::format("{}: {}", head.name(), error.what()));
      const std::scoped_lock lock(mutex_);
      failures_.push_back({head, error.what()});
    }
  }

  const PlasticityJob& job_;
  const Dataset& dataset_;
  Journal& journal_;
  StageTimes& times_;
  Console& console_;
  std::mutex mutex_;
  std::vector<HeadResult> results_;
  std::vector<HeadFailure> failures_;
};

// What makes the numbers reproducible and comparable, said in the manifest.
ordered_json definitions(Variant variant) {
  if (variant == Variant::diagonal)
    return {{"cell", "mean over pairs of 4 p (1 - p), p = Phi(m / sqrt(v)), diagonal residual variance of all queries"},
            {"head", "plain mean over non-empty cells"}};
  return {
      {"cell", "mean over pairs of 4 p (1 - p), p = Phi(m / sqrt(v)), full semantic covariance of the query bucket"},
      {"head", "mean over non-empty cells, weight = number of queries in the query bucket"}};
}

// The options as they were resolved, complete: the configuration file of the run gives the same run again.
PlasticityOptions resolved(PlasticityOptions options, const Dataset& dataset) {
  const fs::path root = fs::absolute(dataset.root / "").parent_path();
  options.dataset_local_root = root.parent_path().string();
  options.model_dir = root.filename().string();
  options.num_layers = dataset.num_layers;
  options.num_q_heads = dataset.num_q_heads;
  options.num_k_heads = dataset.num_k_heads;
  return options;
}

void write_tables(const RunFolder& folder, const std::vector<HeadResult>& heads, const PlasticityOptions& options) {
  const auto write = [&](const std::string& name, const Table& table) { folder.write(name, to_csv(table)); };
  write(options.output_csv, head_table(heads, options.variant));
  write(options.bucket_csv, cell_table(heads, options.variant));
  write(options.component_csv, component_table(heads, options.variant));
  write(head_uncertainty_csv, head_uncertainty_table(heads));
  write(cell_uncertainty_csv, cell_uncertainty_table(heads));
  write(head_replicates_csv, replicate_table(heads));
}

// Vectors that were left out, by file: a key file counts once, whoever reads it.
std::map<std::string, std::int64_t> dropped_vectors(const std::vector<HeadResult>& heads, const Dataset& dataset) {
  std::map<std::string, std::int64_t> dropped;
  for (const HeadResult& head : heads) {
    if (head.q_dropped > 0) dropped[dataset.query_file(head.id).string()] = head.q_dropped;
    if (head.k_dropped > 0) dropped[dataset.key_file(head.id).string()] = head.k_dropped;
  }
  return dropped;
}

std::int64_t total_of(const std::map<std::string, std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& entry) { return sum + entry.second; });
}

ordered_json results_json(const PlasticityOutcome& outcome, const Dataset& dataset) {
  ordered_json failed = ordered_json::array(), inputs = ordered_json::object();
  for (const HeadFailure& failure : outcome.failures)
    failed.push_back({{"head", failure.id.name()}, {"message", failure.message}});
  for (const HeadResult& head : outcome.heads) {
    inputs[dataset.query_file(head.id).string()] = head.q_hash;
    inputs[dataset.key_file(head.id).string()] = head.k_hash;
  }
  const std::map<std::string, std::int64_t> dropped = dropped_vectors(outcome.heads, dataset);
  return {{"heads", outcome.heads.size()},
          {"failed", failed},
          {"dropped_nonfinite", total_of(dropped)},
          {"dropped_nonfinite_by_file", dropped},
          {"seconds", outcome.seconds},
          {"stages", outcome.stages},
          {"inputs_xxh3_128", inputs}};
}

void warn_about(const std::vector<HeadResult>& heads, const Dataset& dataset, Console& console) {
  const auto is_constant = [](const HeadResult& head) { return !head.constant_components.empty(); };
  const auto first = std::find_if(heads.begin(), heads.end(), is_constant);
  if (first != heads.end())
    console.warn(
        fmt::format("{} of {} heads have constant query components (first: {}, component {}); their R² is 1 by "
                    "definition and dominates the component weights",
                    std::count_if(first, heads.end(), is_constant), heads.size(), first->id.name(),
                    first->constant_components.front()));
  const std::map<std::string, std::int64_t> dropped = dropped_vectors(heads, dataset);
  if (!dropped.empty())
    console.warn(
        fmt::format("{} vectors with NaN or infinity were left out, in {} files (first: {}; all in manifest.json)",
                    total_of(dropped), dropped.size(), dropped.begin()->first));
}

ordered_json stages_json(const StageTimes& times) {
  ordered_json stages;
  for (std::size_t stage = 0; stage < StageTimes::names.size(); ++stage)
    stages[std::string(StageTimes::names[stage])] = times.seconds(stage);
  return stages;
}

}  // namespace

PlasticityOutcome run_plasticity(const PlasticityJob& job, Console& console) {
  const auto start = std::chrono::steady_clock::now();
  const InterruptGuard guard;
  validate(job.options);
  theme_named(job.theme);  // an unknown name is refused before the work, not after it
  check_out(job.folder, "plasticity", RunWrites::as_it_goes);
  const Dataset dataset =
      job.demo ? demo_dataset(job.folder.out / demo_data_name) : open_dataset(job.data, job.options);
  const PlasticityOptions options = resolved(job.options, dataset);
  const ordered_json facts = {
      {"variant", json_value(options.variant)}, {"definitions", definitions(options.variant)}, {"device", "cpu"}};
  RunFolder folder(job.folder, {.command = "plasticity",
                                .command_line = job.command_line,
                                .config = to_json(options),
                                .facts = facts,
                                .writes = RunWrites::as_it_goes,
                                .free_keys = {"dataset_local_root", "max_workers"},
                                .inputs = job.demo ? std::vector<fs::path>() : std::vector{dataset.root}});
  const auto remove_journal = [&] {
    std::error_code ignored;  // the run is complete with it, too
    fs::remove(folder.place() / journal_name, ignored);
  };
  PlasticityOutcome outcome;
  outcome.out = folder.path();
  outcome.already_complete = folder.already_complete();
  if (outcome.already_complete) {
    remove_journal();  // a kill right after the last manifest leaves it
    return outcome;
  }

  return folder.live([&] {
    StageTimes times;
    if (job.demo) write_demo(dataset, options.seed, options.variant == Variant::diagonal);
    Journal journal(folder.place() / journal_name);
    HeadLoop loop(job, dataset, journal, times, console);
    loop.run();
    outcome.heads = std::move(loop).results();
    outcome.failures = std::move(loop).failures();
    {
      const StageTimer timer(times, Stage::write);
      if (!outcome.heads.empty()) write_tables(folder, outcome.heads, options);
    }
    folder.check_in_place();
    if (job.figures && !outcome.heads.empty())
      draw_or_warn(folder.path(), console,
                   [&] { draw_run(folder.path(), folder.place(), job.theme, job.per_head_figures); });
    warn_about(outcome.heads, dataset, console);
    outcome.stages = stages_json(times);
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const bool complete = outcome.failures.empty();
    folder.finish(complete ? RunStatus::complete : RunStatus::incomplete, results_json(outcome, dataset));
    if (complete) remove_journal();
    return outcome;
  });
}

std::vector<fs::path> draw_run(const fs::path& run, const fs::path& out, const std::string& theme, bool per_head) {
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
  tables.title = text_at(manifest["config"], "model_dir");
  if (fs::exists(run / head_uncertainty_csv)) tables.uncertainty = read_csv(run / head_uncertainty_csv);
  PlasticityFigureOptions options;
  options.theme = theme_named(theme);
  options.per_head = per_head;
  return draw_plasticity_figures(tables, out / "plots", options);
}

}  // namespace headscope
