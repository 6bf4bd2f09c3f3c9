#include "plasticity/tables.h"

#include <functional>

namespace headscope {
namespace {

// Rows of some kind, each beside the head that it belongs to.
template <class Row>
struct Entry {
  const HeadResult* head;
  const Row* row;
  std::int64_t index;  // within the head
};

template <class Row>
std::vector<Entry<Row>> entries(const std::vector<HeadResult>& heads, const std::vector<Row> HeadResult::*rows) {
  std::vector<Entry<Row>> all;
  for (const HeadResult& head : heads)
    for (std::size_t i = 0; i < (head.*rows).size(); ++i)
      all.push_back({&head, &(head.*rows)[i], static_cast<std::int64_t>(i)});
  return all;
}

template <class Item, class Get>
auto column(const std::vector<Item>& items, Get get) {
  std::vector<std::decay_t<std::invoke_result_t<Get, const Item&>>> values;
  values.reserve(items.size());
  for (const Item& item : items) values.push_back(std::invoke(get, item));
  return values;
}

// The three columns that name a head.
template <class Item, class Head>
Table begin_table(const std::vector<Item>& items, Head head) {
  Table table;
  table.add("layer", column(items, [&](const Item& item) { return head(item).id.layer; }));
  table.add("q_head", column(items, [&](const Item& item) { return head(item).id.q_head; }));
  table.add("k_head", column(items, [&](const Item& item) { return head(item).id.k_head; }));
  return table;
}

const HeadResult& itself(const HeadResult& head) {
  return head;
}

template <class Row>
Table begin_table(const std::vector<Entry<Row>>& items) {
  return begin_table(items, [](const Entry<Row>& entry) -> const HeadResult& { return *entry.head; });
}

}  // namespace

Table head_table(const std::vector<HeadResult>& heads, Variant variant) {
  Table table = begin_table(heads, itself);
  const auto metric = [&](const char* name, double QueryMetrics::*member) {
    table.add(name, column(heads, [&](const HeadResult& head) { return head.metrics.*member; }));
  };
  table.add("n_q_tokens", column(heads, &HeadResult::n_q_tokens));
  table.add("n_k_tokens", column(heads, &HeadResult::n_k_tokens));
  table.add("d_model", column(heads, &HeadResult::dim));
  metric("q_R2_pos", &QueryMetrics::r2_pos);
  if (variant == Variant::diagonal) metric("q_beta_norm", &QueryMetrics::beta_norm);
  metric("q_R2_scalar", &QueryMetrics::r2_scalar);
  metric("q_mae_baseline", &QueryMetrics::mae_baseline);
  metric("q_mae_proj", &QueryMetrics::mae_proj);
  metric("q_mae_ratio", &QueryMetrics::mae_ratio);
  metric("q_resid0_skew", &QueryMetrics::resid0_skew);
  metric("q_resid0_kurt", &QueryMetrics::resid0_kurt);
  metric("q_resid0_ks_p", &QueryMetrics::resid0_ks_p);
  metric("q_noise_med_abs_skew", &QueryMetrics::noise_med_abs_skew);
  metric("q_noise_med_abs_kurt", &QueryMetrics::noise_med_abs_kurt);
  metric("q_noise_med_ks_p", &QueryMetrics::noise_med_ks_p);
  metric("q_noise_frac_ks_p_lt_alpha", &QueryMetrics::noise_frac_ks_p_lt_alpha);
  table.add("ap_overall", column(heads, &HeadResult::ap_overall));
  return table;
}

Table cell_table(const std::vector<HeadResult>& heads, Variant variant) {
  const auto cells = entries(heads, &HeadResult::cells);
  Table table = begin_table(cells);
  table.add("q_bucket", column(cells, [](const auto& cell) { return cell.row->q_bucket; }));
  table.add("k_bucket", column(cells, [](const auto& cell) { return cell.row->k_bucket; }));
  auto values = column(cells, [](const auto& cell) { return cell.row->plasticity; });
  if (variant == Variant::diagonal) return table.add("ap_bucket", std::move(values));
  table.add("plasticity", std::move(values));
  table.add("n_pairs", column(cells, [](const auto& cell) { return cell.row->n_pairs; }));
  return table;
}

Table component_table(const std::vector<HeadResult>& heads, Variant variant) {
  const auto weights = entries(heads, &HeadResult::component_weight);
  Table table = begin_table(weights);
  table.add("component", column(weights, [](const auto& weight) { return weight.index; }));
  auto values = column(weights, [](const auto& weight) { return *weight.row; });
  if (variant == Variant::seed) return table.add("weight", std::move(values));
  const auto r2 = entries(heads, &HeadResult::component_r2);
  table.add("component_r2", column(r2, [](const auto& entry) { return *entry.row; }));
  return table.add("component_weight", std::move(values));
}

Table head_uncertainty_table(const std::vector<HeadResult>& heads) {
  Table table = begin_table(heads, itself);
  // Columns of one estimate: its value, then standard errors and interval under a prefix of their own.
  const auto estimate = [&](const std::string& name, const std::string& prefix, Estimate HeadResult::*member) {
    const auto add = [&](const std::string& column_name, auto get) {
      table.add(column_name, column(heads, [&](const HeadResult& head) { return std::invoke(get, head.*member); }));
    };
    add(name, &Estimate::value);
    add(prefix + "se_pairs", &Estimate::se_pairs);
    add(prefix + "se_examples", &Estimate::se_examples);
    add(prefix + "low", &Estimate::low);
    add(prefix + "high", &Estimate::high);
  };
  table.add("n_examples", column(heads, &HeadResult::n_examples));
  estimate("ap_overall", "", &HeadResult::overall);
  estimate("ap_first_20", "ap_first_20_", &HeadResult::first_20);
  estimate("ap_last_20", "ap_last_20_", &HeadResult::last_20);
  estimate("ap_drop", "ap_drop_", &HeadResult::drop);
  table.add("examples_hash", column(heads, &HeadResult::examples_hash));
  return table;
}

Table cell_uncertainty_table(const std::vector<HeadResult>& heads) {
  const auto cells = entries(heads, &HeadResult::cells);
  Table table = begin_table(cells);
  const auto add = [&](const char* name, auto member) {
    table.add(name, column(cells, [&](const auto& cell) { return cell.row->*member; }));
  };
  add("q_bucket", &CellResult::q_bucket);
  add("k_bucket", &CellResult::k_bucket);
  add("plasticity", &CellResult::plasticity);
  add("n_pairs", &CellResult::n_pairs);
  add("n_examples", &CellResult::n_examples);
  add("se_pairs", &CellResult::se_pairs);
  add("se_examples", &CellResult::se_examples);
  return table;
}

Table replicate_table(const std::vector<HeadResult>& heads) {
  const auto replicates = entries(heads, &HeadResult::replicates);
  Table table = begin_table(replicates);
  table.add("replicate", column(replicates, [](const auto& entry) { return entry.index; }));
  table.add("ap_overall", column(replicates, [](const auto& entry) { return *entry.row; }));
  return table;
}

}  // namespace headscope
