#include "plasticity/compare.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/json_text.h"
#include "core/missing.h"
#include "formats/table.h"
#include "plasticity/comparison_figures.h"
#include "plasticity/tables.h"
#include "stats/normal.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* comparison_csv = "comparison.csv";

struct HeadOfRun {
  double value = missing, standard_error = missing;
  std::string examples_hash;
  std::vector<double> replicates;
};

struct Run {
  std::string name;
  std::uint64_t seed = 0;
  std::map<HeadId, HeadOfRun> heads;
};

HeadId id_of(const Table& table, std::size_t row) {
  return {table.integers("layer")[row], table.integers("q_head")[row], table.integers("k_head")[row]};
}

Run read_run(const fs::path& folder) {
  const ordered_json manifest = read_manifest(folder);
  if (manifest.value("command", "") != "plasticity")
    fail_input("{}: is a run of '{}'; expected one of 'plasticity'", folder.string(), manifest.value("command", ""));
  const std::string status = manifest.value("status", "");
  if (status != "complete" && status != "incomplete")
    fail_input("{}: the run is not finished (status {}); go on with --resume", folder.string(), status);
  Run run;
  run.name = fs::absolute(folder / "").parent_path().filename().string();
  run.seed = manifest.at("config").value("seed", std::uint64_t{0});
  const Table heads = read_csv(folder / head_uncertainty_csv);
  const Numbers value = heads.numbers("ap_overall"), se_pairs = heads.numbers("se_pairs"),
                se_examples = heads.numbers("se_examples");
  for (std::size_t row = 0; row < heads.rows(); ++row)
    run.heads[id_of(heads, row)] = {value[row],
                                    Estimate{value[row], se_pairs[row], se_examples[row]}.standard_error(),
                                    heads.texts("examples_hash")[row],
                                    {}};
  const Table replicates = read_csv(folder / head_replicates_csv);
  const Numbers replicate_value = replicates.numbers("ap_overall");
  for (std::size_t row = 0; row < replicates.rows(); ++row)
    run.heads.at(id_of(replicates, row)).replicates.push_back(replicate_value[row]);
  return run;
}

// The same examples, resampled in the same way: the noise that the runs share cancels.
bool can_be_paired(const Run& run_1, const HeadOfRun& head_1, const Run& run_2, const HeadOfRun& head_2) {
  return run_1.seed == run_2.seed && head_1.examples_hash == head_2.examples_hash && !head_1.replicates.empty() &&
         head_1.replicates.size() == head_2.replicates.size();
}

double paired_error(const HeadOfRun& head_1, const HeadOfRun& head_2) {
  Eigen::Map<const Eigen::ArrayXd> first(head_1.replicates.data(), static_cast<Eigen::Index>(head_1.replicates.size()));
  Eigen::Map<const Eigen::ArrayXd> second(head_2.replicates.data(), first.size());
  return sample_deviation(second - first);
}

HeadDifference difference_of(const HeadId& id, const Run& run_1, const HeadOfRun& head_1, const Run& run_2,
                             const HeadOfRun& head_2) {
  HeadDifference result;
  result.id = id;
  result.ap_1 = head_1.value;
  result.ap_2 = head_2.value;
  result.difference = head_2.value - head_1.value;
  result.paired = can_be_paired(run_1, head_1, run_2, head_2);
  result.standard_error =
      result.paired ? paired_error(head_1, head_2) : std::hypot(head_1.standard_error, head_2.standard_error);
  const Estimate estimate{result.difference, result.standard_error, missing};
  result.low = estimate.low();
  result.high = estimate.high();
  if (result.standard_error > 0)
    result.p_value = 2 * normal_cdf(-std::abs(result.difference) / result.standard_error);
  else
    result.p_value = result.difference == 0 ? 1 : 0;
  if (std::isnan(result.standard_error)) result.p_value = missing;
  return result;
}

Table to_table(const std::vector<HeadDifference>& heads) {
  Integers layer, q_head, k_head, paired, significant;
  Numbers ap_1, ap_2, difference, standard_error, low, high, p_value;
  for (const HeadDifference& head : heads) {
    layer.push_back(head.id.layer), q_head.push_back(head.id.q_head), k_head.push_back(head.id.k_head);
    ap_1.push_back(head.ap_1), ap_2.push_back(head.ap_2), difference.push_back(head.difference);
    standard_error.push_back(head.standard_error), low.push_back(head.low), high.push_back(head.high);
    p_value.push_back(head.p_value), paired.push_back(head.paired), significant.push_back(head.significant);
  }
  Table table;
  table.add("layer", layer).add("q_head", q_head).add("k_head", k_head).add("ap_1", ap_1).add("ap_2", ap_2);
  table.add("difference", difference).add("se", standard_error).add("low", low).add("high", high);
  return table.add("p_value", p_value).add("paired", paired).add("significant", significant);
}

}  // namespace

void control_false_discoveries(std::vector<HeadDifference>& heads, double rate) {
  std::vector<HeadDifference*> tested;
  for (HeadDifference& head : heads)
    if (!std::isnan(head.p_value)) tested.push_back(&head);
  std::sort(tested.begin(), tested.end(), [](const auto* a, const auto* b) { return a->p_value < b->p_value; });
  std::size_t accepted = 0;  // the largest i with p_(i) <= rate i / m
  for (std::size_t i = 1; i <= tested.size(); ++i)
    if (tested[i - 1]->p_value <= rate * static_cast<double>(i) / static_cast<double>(tested.size())) accepted = i;
  for (std::size_t i = 0; i < accepted; ++i) tested[i]->significant = true;
}

CompareOutcome compare_runs(const CompareJob& job) {
  theme_named(job.theme);
  const Run run_1 = read_run(job.run_1), run_2 = read_run(job.run_2);
  CompareOutcome outcome;
  for (const auto& [id, head_1] : run_1.heads) {
    const auto other = run_2.heads.find(id);
    if (other != run_2.heads.end()) outcome.heads.push_back(difference_of(id, run_1, head_1, run_2, other->second));
  }
  if (outcome.heads.empty()) fail_input("{} and {} have no head in common", job.run_1.string(), job.run_2.string());
  outcome.only_in_one = run_1.heads.size() + run_2.heads.size() - 2 * outcome.heads.size();
  control_false_discoveries(outcome.heads, 0.05);

  const ordered_json config = {
      {"run_1", job.run_1.string()}, {"run_2", job.run_2.string()}, {"name_1", run_1.name}, {"name_2", run_2.name}};
  RunFolder folder(job.folder, {compare_command, job.command_line, config, {{"device", "cpu"}}});
  outcome.out = folder.path();
  if (folder.already_complete()) return outcome;
  return folder.live([&] {
    const Table table = to_table(outcome.heads);
    folder.write(comparison_csv, to_csv(table));
    draw_comparison_figure({table, run_1.name, run_2.name}, folder.place() / "plots", theme_named(job.theme));
    folder.finish(RunStatus::complete, {{"heads", outcome.heads.size()}, {"only_in_one", outcome.only_in_one}});
    return outcome;
  });
}

std::vector<fs::path> draw_comparison_run(const fs::path& run, const fs::path& out, const std::string& theme) {
  const ordered_json config = read_manifest(run).value("config", ordered_json::object());
  const PlasticityComparison comparison{read_csv(run / comparison_csv), text_at(config, "name_1"),
                                        text_at(config, "name_2")};
  return draw_comparison_figure(comparison, out / "plots", theme_named(theme));
}

}  // namespace headscope
