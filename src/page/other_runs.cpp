#include "page/other_runs.h"

#include <cmath>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "heads/findings/answer.h"
#include "heads/surgery.h"
#include "page/column.h"
#include "plasticity/tables.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

using Names = std::initializer_list<const char*>;

// These columns hold numbers of layers, heads and buckets.
Table read_numbered(const fs::path& file, Names names) {
  constexpr std::int64_t end = 1 << 16;  // no model or text has as many
  Table table = read_csv(file);
  for (const char* name : names) {
    const Integers& numbers = table.integers(name);
    for (std::size_t row = 0; row < numbers.size(); ++row)
      if (numbers[row] < 0 || numbers[row] >= end)
        fail_input("{}: row {}: {} {}: out of range; the table is damaged", file.string(), row, name, numbers[row]);
  }
  return table;
}

std::string head_cell(const Table& table, std::size_t row) {
  return head_text(HeadKind::query, table.integers("layer")[row], table.integers("q_head")[row]);
}

// The table that the configuration names; nothing where it is not there yet.
std::optional<Table> chosen_table(const fs::path& folder, const ordered_json& manifest, const char* key, Names names) {
  const std::string name = text_at(manifest.at("config"), key);
  if (!is_plain_csv_name(name))
    fail_input("{}: is damaged: 'config.{}' is not the name of a table", (folder / manifest_name).string(), key);
  std::error_code error;
  if (!fs::is_regular_file(folder / name, error)) return std::nullopt;
  return read_numbered(folder / name, names);
}

// Columns under other names, as lists of JSON.
ordered_json columns_json(const Table& table, const std::vector<std::pair<const char*, const char*>>& names) {
  ordered_json object;
  for (const auto& [name, shown] : names)
    if (table.has(name)) object[shown] = table.numbers(name);
  return object;
}

// Cells with the error of each where it is known.
NumberColumns cells_of(const Table& cells, const std::optional<Table>& errors) {
  NumberColumns columns;
  const auto add = [&](const char* name, Numbers values) {
    columns.names.emplace_back(name);
    columns.values.push_back(std::move(values));
  };
  add("layer", cells.numbers("layer"));
  add("head", cells.numbers("q_head"));
  add("q_bucket", cells.numbers("q_bucket"));
  add("k_bucket", cells.numbers("k_bucket"));
  add("value", cells.numbers(cells.has("plasticity") ? "plasticity" : "ap_bucket"));
  if (errors && errors->rows() == cells.rows()) add("se", errors->numbers("se_examples"));
  return columns;
}

}  // namespace

void add_plasticity_tables(const fs::path& folder, const ordered_json& manifest, ReportRun& run) {
  const std::optional<Table> heads = chosen_table(folder, manifest, "output_csv", {"layer", "q_head"});
  if (!heads) return;
  std::error_code error;
  const bool with_intervals = fs::is_regular_file(folder / head_uncertainty_csv, error);
  const Table shown = with_intervals ? read_numbered(folder / head_uncertainty_csv, {"layer", "q_head"}) : *heads;
  run.plasticity = {{"heads", columns_json(shown, {{"layer", "layer"},
                                                   {"q_head", "head"},
                                                   {"ap_overall", "ap"},
                                                   {"low", "low"},
                                                   {"high", "high"},
                                                   {"ap_first_20", "first"},
                                                   {"ap_last_20", "last"}})}};
  TextTable table{
      "plasticity",
      "Attention plasticity of every head. Of two keys of one context, 0: the same one always gets the larger "
      "score; 1: over the queries of a later region that is a coin flip",
      {"head", "plasticity"},
      {},
      0};
  if (with_intervals) table.head.emplace_back("95 % interval");
  const Numbers ap = shown.numbers("ap_overall");
  const int digits = column_digits(ap);
  for (std::size_t row = 0; row < shown.rows(); ++row) {
    table.rows.push_back({head_cell(shown, row), column_cell(ap[row], digits)});
    if (with_intervals)
      table.rows.back().push_back(interval_cell(shown.numbers("low")[row], shown.numbers("high")[row], digits));
  }
  run.tables.push_back(std::move(table));
  const std::optional<Table> cells =
      chosen_table(folder, manifest, "bucket_csv", {"layer", "q_head", "q_bucket", "k_bucket"});
  std::optional<Table> errors;
  if (fs::is_regular_file(folder / cell_uncertainty_csv, error)) errors = read_csv(folder / cell_uncertainty_csv);
  if (cells) run.plasticity_cells = cells_of(*cells, errors);
}

void add_comparison_table(const fs::path& folder, const ordered_json& manifest, ReportRun& run) {
  std::error_code error;
  if (!fs::is_regular_file(folder / comparison_csv, error)) return;
  const Table table = read_numbered(folder / comparison_csv, {"layer", "q_head"});
  const ordered_json config = manifest.at("config");
  const std::string name_1 = text_at(config, "name_1", "1"), name_2 = text_at(config, "name_2", "2");
  run.comparison = {{"names", {name_1, name_2}}};
  run.comparison.update(columns_json(table, {{"layer", "layer"},
                                             {"q_head", "head"},
                                             {"ap_1", "ap_1"},
                                             {"ap_2", "ap_2"},
                                             {"difference", "difference"},
                                             {"low", "low"},
                                             {"high", "high"},
                                             {"significant", "significant"}}));
  TextTable shown{"comparison",
                  fmt::format("Plasticity of every head: 1 is {}, 2 is {}. Significant: a false discovery rate of 5 % "
                              "over all heads",
                              name_1, name_2),
                  {"head", "1", "2", "2 − 1", "95 % interval", "significant"},
                  {},
                  0};
  const Numbers ap_1 = table.numbers("ap_1"), ap_2 = table.numbers("ap_2"), difference = table.numbers("difference"),
                low = table.numbers("low"), high = table.numbers("high"), significant = table.numbers("significant");
  const int digits = column_digits(ap_1);
  for (std::size_t row = 0; row < table.rows(); ++row)
    shown.rows.push_back({head_cell(table, row), column_cell(ap_1[row], digits), column_cell(ap_2[row], digits),
                          column_cell(difference[row], digits), interval_cell(low[row], high[row], digits),
                          significant[row] != 0 ? "yes" : "no"});
  run.tables.push_back(std::move(shown));
}

void add_surgery_table(const fs::path& folder, ReportRun& run) {
  std::error_code error;
  const fs::path file = folder / "surgery.parquet";
  if (!fs::is_regular_file(file, error)) return;
  const SurgeryLosses losses = read_losses_of_surgery(folder);
  try {
    run.surgery = to_json(losses);
  } catch (const Error& problem) {
    fail_input("{}: {}", file.string(), problem.what());
  }
  TextTable table{"surgery",
                  fmt::format("Loss after surgery on keys; unmodified {}, with uniform attention {}",
                              number_text(losses.unmodified), number_text(losses.uniform)),
                  {"method", "by", "removed", "bits", "repeat", "loss", "change"},
                  {},
                  0};
  const Texts &method = losses.rows.texts("method"), &by = losses.rows.texts("by");
  const Numbers share = losses.rows.numbers("share_removed"), bits = losses.rows.numbers("bits"),
                repeat = losses.rows.numbers("repeat"), loss = losses.rows.numbers("loss"),
                change = losses.rows.numbers("loss_change");
  const int digits = column_digits(loss);
  for (std::size_t row = 0; row < losses.rows.rows(); ++row) {
    const bool removes_dimensions = method[row] == "remove";
    table.rows.push_back({method[row], by[row], removes_dimensions ? percent_text(share[row]) : "",
                          removes_dimensions ? "" : fmt::format("{:.0f}", bits[row]),
                          fmt::format("{:.0f}", repeat[row]), column_cell(loss[row], digits),
                          column_cell(change[row], digits)});
  }
  run.tables.push_back(std::move(table));
}

}  // namespace headscope
