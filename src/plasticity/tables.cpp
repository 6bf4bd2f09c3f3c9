#include "plasticity/tables.h"

#include <algorithm>
#include <functional>

namespace headscope {
namespace {

// Builds a table with one row for each item. The first three columns name the item's head.
template <class Item>
class TableOf {
 public:
  explicit TableOf(const std::vector<Item>& items) : items_(items) {
    add("layer", [](const Item& item) { return item.id.layer; });
    add("q_head", [](const Item& item) { return item.id.q_head; });
    add("k_head", [](const Item& item) { return item.id.k_head; });
  }

  // `get` is a member of the item or a function of it.
  template <class Get>
  void add(const std::string& name, Get get) {
    std::vector<std::decay_t<std::invoke_result_t<Get, const Item&>>> values;
    values.reserve(items_.size());
    for (const Item& item : items_) values.push_back(std::invoke(get, item));
    table_.add(name, std::move(values));
  }
  Table take() { return std::move(table_); }

 private:
  const std::vector<Item>& items_;
  Table table_;
};

// A cell, a component or a replicate, with the head that it belongs to.
template <class Value>
struct Part {
  const HeadResult* head;
  HeadId id;          // of the head
  std::size_t index;  // within the head
  Value value;
};

template <class Get>
auto parts_of(const std::vector<HeadResult>& heads, Get get) {
  std::vector<Part<typename std::decay_t<std::invoke_result_t<Get, const HeadResult&>>::value_type>> parts;
  for (const HeadResult& head : heads) {
    std::size_t index = 0;
    for (const auto& value : std::invoke(get, head)) parts.push_back({&head, head.id, index++, value});
  }
  return parts;
}

std::int64_t number_of(const Part<double>& part) {
  return static_cast<std::int64_t>(part.index);
}

Table head_table(const std::vector<HeadResult>& heads, Variant variant) {
  TableOf table(heads);
  table.add("n_q_tokens", &HeadResult::n_q_tokens);
  table.add("n_k_tokens", &HeadResult::n_k_tokens);
  table.add("d_model", &HeadResult::dim);
  for (const auto& [name, metric] : query_metrics)
    if (variant == Variant::diagonal || metric != &QueryMetrics::beta_norm)
      table.add(std::string(name), [member = metric](const HeadResult& head) { return head.metrics.*member; });
  table.add("ap_overall", &HeadResult::ap_overall);
  return table.take();
}

// `columns` follow those that name the cell.
template <class... Member>
Table cells_with(const std::vector<HeadResult>& heads, const std::pair<const char*, Member>&... columns) {
  const auto cells = parts_of(heads, &HeadResult::cells);
  TableOf table(cells);
  const auto add = [&](const char* name, auto member) {
    table.add(name, [&](const Part<CellResult>& cell) { return cell.value.*member; });
  };
  add("q_bucket", &CellResult::q_bucket);
  add("k_bucket", &CellResult::k_bucket);
  (add(columns.first, columns.second), ...);
  return table.take();
}

Table cell_table(const std::vector<HeadResult>& heads, Variant variant) {
  if (variant == Variant::diagonal) return cells_with(heads, std::pair("ap_bucket", &CellResult::plasticity));
  return cells_with(heads, std::pair("plasticity", &CellResult::plasticity),
                    std::pair("n_pairs", &CellResult::n_pairs));
}

Table cell_uncertainty_table(const std::vector<HeadResult>& heads) {
  return cells_with(heads, std::pair("plasticity", &CellResult::plasticity), std::pair("n_pairs", &CellResult::n_pairs),
                    std::pair("n_examples", &CellResult::n_examples), std::pair("se_pairs", &CellResult::se_pairs),
                    std::pair("se_examples", &CellResult::se_examples), std::pair("n_queries", &CellResult::n_queries));
}

Table component_table(const std::vector<HeadResult>& heads, Variant variant) {
  const auto weights = parts_of(heads, &HeadResult::component_weight);
  TableOf table(weights);
  table.add("component", number_of);
  if (variant == Variant::diagonal)
    table.add("component_r2", [](const auto& part) { return part.head->component_r2[part.index]; });
  table.add(variant == Variant::diagonal ? "component_weight" : "weight", &Part<double>::value);
  return table.take();
}

Table head_uncertainty_table(const std::vector<HeadResult>& heads) {
  TableOf table(heads);
  // Columns of one estimate: its value, then its standard errors and interval, whose names begin with the prefix. The
  // interval is cut to the values that can be.
  const auto estimate = [&](const std::string& name, const std::string& prefix, Estimate HeadUncertainty::*member,
                            double least = 0) {
    const auto add = [&](const std::string& column, auto get) {
      table.add(column, [&](const HeadResult& head) { return std::invoke(get, head.uncertainty.*member); });
    };
    add(name, &Estimate::value);
    add(prefix + "se_pairs", &Estimate::se_pairs);
    add(prefix + "se_examples", &Estimate::se_examples);
    // NaN stays NaN.
    add(prefix + "low", [=](const Estimate& of) { return std::clamp(of.low(), least, 1.0); });
    add(prefix + "high", [=](const Estimate& of) { return std::clamp(of.high(), least, 1.0); });
  };
  table.add("n_examples", [](const HeadResult& head) { return head.uncertainty.n_examples; });
  estimate("ap_overall", "", &HeadUncertainty::overall);
  estimate("ap_first_20", "ap_first_20_", &HeadUncertainty::first_20);
  estimate("ap_last_20", "ap_last_20_", &HeadUncertainty::last_20);
  estimate("ap_drop", "ap_drop_", &HeadUncertainty::drop, -1);
  table.add("examples_hash", [](const HeadResult& head) { return head.uncertainty.examples_hash; });
  return table.take();
}

Table check_table(const std::vector<HeadResult>& heads) {
  TableOf table(heads);
  const auto add = [&](const char* name, auto member) {
    table.add(name, [member](const HeadResult& head) { return head.checks.*member; });
  };
  add("ap_empirical", &HeadChecks::ap_empirical);
  add("ap_gap", &HeadChecks::ap_gap);
  add("ap_own_text", &HeadChecks::ap_own_text);
  add("ap_shuffled", &HeadChecks::ap_shuffled);
  add("ap_other_text", &HeadChecks::ap_other_text);
  add("ks_d", &HeadChecks::ks_d);
  add("lilliefors_p", &HeadChecks::lilliefors_p);
  add("ap_gap_se", &HeadChecks::ap_gap_se);
  add("ap_shuffled_gap_se", &HeadChecks::ap_shuffled_gap_se);
  add("ap_text_gap_se", &HeadChecks::ap_text_gap_se);
  add("own_text_pairs", &HeadChecks::own_text_pairs);
  add("own_text_queries", &HeadChecks::own_text_queries);
  return table.take();
}

Table replicate_table(const std::vector<HeadResult>& heads) {
  const auto replicates = parts_of(heads, [](const HeadResult& head) { return head.uncertainty.replicates; });
  TableOf table(replicates);
  table.add("replicate", number_of);
  table.add("ap_overall", &Part<double>::value);
  return table.take();
}

}  // namespace

PlasticityTables figure_tables(const PlasticityResult& result, const std::string& title) {
  const Variant variant = result.options.variant;
  std::optional<Table> checks;
  if (result.options.checks) checks = check_table(result.heads);
  return {.heads = head_table(result.heads, variant),
          .cells = cell_table(result.heads, variant),
          .components = component_table(result.heads, variant),
          .title = title,
          .uncertainty = head_uncertainty_table(result.heads),
          .cell_sizes = cell_uncertainty_table(result.heads),
          .checks = std::move(checks)};
}

PlasticityComparison figure_tables(const Comparison& comparison) {
  TableOf table(comparison.heads);
  table.add("ap_1", &HeadDifference::ap_1);
  table.add("ap_2", &HeadDifference::ap_2);
  table.add("difference", &HeadDifference::difference);
  table.add("se", &HeadDifference::standard_error);
  table.add("low", &HeadDifference::low);
  table.add("high", &HeadDifference::high);
  table.add("p_value", &HeadDifference::p_value);
  table.add("paired", [](const HeadDifference& head) { return std::int64_t{head.paired}; });
  table.add("significant", [](const HeadDifference& head) { return std::int64_t{head.significant}; });
  return {table.take(), comparison.name_1, comparison.name_2};
}

void write_plasticity(const PlasticityResult& result, const RunFolder& folder) {
  const auto& [options, heads, failures, times] = result;
  if (heads.empty()) return;
  folder.write(options.output_csv, to_csv(head_table(heads, options.variant)));
  folder.write(options.bucket_csv, to_csv(cell_table(heads, options.variant)));
  folder.write(options.component_csv, to_csv(component_table(heads, options.variant)));
  folder.write(head_uncertainty_csv, to_csv(head_uncertainty_table(heads)));
  folder.write(cell_uncertainty_csv, to_csv(cell_uncertainty_table(heads)));
  folder.write(head_replicates_csv, to_csv(replicate_table(heads)));
  if (options.checks) folder.write(head_checks_csv, to_csv(check_table(heads)));
}

void write_comparison(const Comparison& comparison, const RunFolder& folder) {
  folder.write(comparison_csv, to_csv(figure_tables(comparison).table));
}

}  // namespace headscope
