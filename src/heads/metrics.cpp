#include "heads/metrics.h"

#include <algorithm>
#include <charconv>

#include "core/bounds.h"
#include "core/config.h"
#include "core/error.h"
#include "core/lists.h"
#include "core/text.h"

namespace headscope {
namespace {

using enum MetricGroup;

constexpr HeadKind k = HeadKind::key, q = HeadKind::query;

constexpr std::array metrics = {
    Metric{"k_norm", norm, k, "", "mean over tokens of the key's norm"},
    Metric{"k_norm_std", norm, k, "", "standard deviation over tokens of the key's norm"},
    Metric{"k_std", norm, k, "", "standard deviation of all components of all keys"},
    Metric{"k_token0_norm", norm, k, "", "norm of the first token's key, mean over sequences"},
    Metric{"k_max_abs_mean", outlier, k, "", "mean over tokens of the key's largest component"},
    Metric{"k_max_abs", outlier, k, "", "largest component of all keys"},
    Metric{"k_axis", outlier, k, "", "mean of largest component over norm; 1: one-hot"},
    Metric{"k_pr_vector", outlier, k, "dimensions", "mean participation ratio of one key's components"},
    Metric{"k_top_dim", outlier, k, "index", "dimension that holds the most energy", /*averaged=*/false},
    Metric{"k_top_energy", outlier, k, "", "share of all energy in that dimension"},
    Metric{"k_top_share", outlier, k, "", "share of tokens whose largest component is in that dimension"},
    Metric{"k_pr", rank, k, "dimensions", "participation ratio of the singular values"},
    Metric{"k_erank", rank, k, "dimensions", "exponential of the singular values' entropy"},
    Metric{"k_pr_eig", rank, k, "dimensions", "participation ratio of the squared singular values"},
    Metric{"k_stable_rank", rank, k, "dimensions", "energy over that of the largest singular value"},
    Metric{"k_cosine", redundancy, k, "", "mean cosine of all pairs of distinct keys"},
    Metric{"q_norm", norm, q, "", "mean over tokens of the query's norm"},
    Metric{"qk_ratio", norm, q, "", "q_norm over k_norm of its key head"},
    Metric{"entropy", attention, q, "nats", "entropy of the attention, mean over rows"},
    Metric{"entropy_norm", attention, q, "", "entropy of row i over ln(i+1), mean over rows after the first"},
    Metric{"entropy_seed", attention, q, "nats", "entropy as the source study takes it: no mask, no RoPE, 128 tokens"},
    Metric{"max_logit", attention, q, "", "largest scaled score of a causal pair"},
    Metric{"sink", attention, q, "", "mean attention to the first token"},
    Metric{"previous", attention, q, "", "mean attention to the token before"},
    Metric{"self", attention, q, "", "mean attention to the token itself"},
    Metric{"constancy", pattern, q, "", "1: every query attends to the same; 0: the query says where"},
    Metric{"consistency", pattern, q, "", "1: the same attention in every sequence; 0: as different as can be"},
    Metric{"induction", induction, q, "", "attention to what followed the token's first occurrence; probes only"},
    Metric{"previous_random", induction, q, "", "attention to the token before, on random tokens; probes only"},
    Metric{"k_pr_centred", other_rank, k, "dimensions", "k_pr of the keys less their mean; probes only"},
    Metric{"k_pr_rotated", other_rank, k, "dimensions", "k_pr of the keys after RoPE; probes only"},
    Metric{"k_pr_before_gain", other_rank, k, "dimensions", "k_pr of the keys over QK-Norm's gain; probes only"},
    Metric{"qk_pr", other_rank, q, "dimensions", "participation ratio of QKᵀ before RoPE; probes only"},
    Metric{"qk_pr_rotated", other_rank, q, "dimensions", "participation ratio of QKᵀ after RoPE; probes only"},
    Metric{"score_std", score, q, "", "spread of a query's scaled scores over keys; probes only"},
};

// What "all" leaves out.
bool is_of_studies(MetricGroup group) {
  return group == other_rank || group == score;
}

std::vector<std::string> names_of_metrics() {
  std::vector<std::string> names;
  for (const Metric& metric : metrics) names.emplace_back(metric.name);
  return names;
}

std::vector<std::string> known_names() {
  std::vector<std::string> names(metric_group_names.begin(), metric_group_names.end());
  names.emplace_back("all");
  for (const std::string& name : names_of_metrics()) names.push_back(name);
  return names;
}

// The number behind the letter at the start of the text, which are taken from it; -1: they are not there.
std::int64_t take_number(char letter, std::string_view& text) {
  std::int64_t value = -1;
  if (!text.starts_with(letter)) return -1;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), value);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

const Metric* find_metric(std::string_view name) {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  return found == metrics.end() ? nullptr : &*found;
}

}  // namespace

std::string head_text(HeadKind kind, std::int64_t layer, std::int64_t head) {
  return fmt::format("L{}{}{}", layer, kind == HeadKind::key ? 'K' : 'H', head);
}

std::optional<std::pair<std::int64_t, std::int64_t>> query_head_named(std::string_view name) {
  const std::int64_t layer = take_number('L', name), head = take_number('H', name);
  if (layer < 0 || head < 0 || !name.empty()) return std::nullopt;
  return std::pair(layer, head);
}

std::span<const Metric> head_metrics() {
  return metrics;
}

const Metric& metric_named(std::string_view name, std::string_view where) {
  if (const Metric* metric = find_metric(name)) return *metric;
  fail_input("{}: {}", where, unknown_name("metric", name, names_of_metrics()));
}

MetricSelection::MetricSelection(std::string_view text, std::string_view where) {
  for (const std::string& part : comma_separated(text)) {
    const auto group = std::ranges::find(metric_group_names, part);
    if (part == "all") {
      for (const Metric& metric : metrics)
        if (!is_of_studies(metric.group)) metrics_.insert(metric.name);
      for (std::size_t i = 0; i < metric_group_names.size(); ++i)
        if (const auto one = static_cast<MetricGroup>(i); !is_of_studies(one)) groups_.insert(one);
    } else if (group != metric_group_names.end()) {
      const auto chosen = static_cast<MetricGroup>(group - metric_group_names.begin());
      groups_.insert(chosen);
      for (const Metric& metric : metrics)
        if (metric.group == chosen) metrics_.insert(metric.name);
    } else if (const Metric* metric = find_metric(part)) {
      groups_.insert(metric->group);
      metrics_.insert(metric->name);
    } else {
      fail_input("{}: {}", where, unknown_name("metric or group", part, known_names()));
    }
  }
}

Course course_of(std::span<const Moment> moments) {
  return {moments.size() < 2 || std::ranges::any_of(moments, [](const Moment& moment) { return moment.tokens > 0; })};
}

std::string moment_text(const Moment& moment, std::string_view before) {
  const std::string text = fmt::format("{}{}", before, moment.step);
  return moment.tokens == 0 && moment.step > 0 ? text : fmt::format("{} ({})", text, tokens_text(moment.tokens));
}

std::string at_step_text(const Moment& moment) {
  return moment.step == 0 ? "" : fmt::format(" at step {}", moment.step);
}

void validate(const TrackOptions& options) {
  check_ranges(options);
  MetricSelection(options.metrics, "track.metrics");
}

}  // namespace headscope
