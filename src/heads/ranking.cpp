#include "heads/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "core/config.h"
#include "core/error.h"
#include "core/missing.h"
#include "core/text.h"
#include "heads/roles/definition.h"
#include "run/manifest.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view change = "change";
constexpr std::size_t recent = 10;  // measurements that an error is estimated from

const Tracks& source_of(const RunTracks& tracks, const RankingOptions& options) {
  if (const Tracks* source = source_that_has(tracks, options.by == change ? "" : options.by, options.source))
    return *source;
  fail_input("{} was not measured{}; see --track of the command that measures", options.by,
             options.source.empty() ? "" : " on " + options.source + " batches");
}

// The standard deviation of a single measurement, from differences of neighbours: a slow trend does not count.
double error_of(const std::vector<double>& values) {
  const std::size_t first = values.size() > recent ? values.size() - recent : 0;
  double squares = 0, count = 0;
  for (std::size_t i = first + 1; i < values.size(); ++i) {
    const double difference = values[i] - values[i - 1];
    if (!std::isfinite(difference)) continue;
    squares += difference * difference;
    ++count;
  }
  return count < 2 ? missing : std::sqrt(squares / count / 2);
}

// The first moment from which on at least half of the way from the first to the last value is gone.
std::size_t half_way(const std::vector<double>& values) {
  const double way = values.back() - values.front();
  if (way == 0) return 0;
  std::size_t since = values.size() - 1;
  while (since > 0 && (values[since - 1] - values.front()) / way >= 0.5) --since;
  return since;
}

// Steps that lie ever farther apart show the course of training, not how much a measurement moves.
bool evenly_measured(const Tracks& tracks, std::size_t last) {
  constexpr double most_uneven = 10;
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = 0;
  for (std::size_t i = last + 1 > recent ? last + 2 - recent : 1; i <= last; ++i) {
    const std::int64_t gap = tracks.moments[i].step - tracks.moments[i - 1].step;
    least = std::min(least, gap);
    most = std::max(most, gap);
  }
  return static_cast<double>(most) <= most_uneven * static_cast<double>(least);
}

// The values of a head up to the moment.
RankedHead head_of(const Tracks& tracks, const Metric& metric, std::int64_t layer, std::int64_t head,
                   std::size_t last) {
  std::vector<double> values = tracks.of_head(metric.name, layer, head);
  values.resize(last + 1);
  const double value = values.back(), error = evenly_measured(tracks, last) ? error_of(values) : missing;
  RankedHead ranked{layer, head, metric.kind, std::string(metric.name), value, value, values.front(), error, {}};
  if (std::fabs(value - ranked.start) > 2 * error) ranked.since = tracks.moments[half_way(values)].step;
  return ranked;
}

// How far the values of all heads are apart, at the first moment and the last: the unit of a change.
double spread_of(const Tracks& tracks, std::string_view metric, std::size_t last) {
  double sum = 0, squares = 0, count = 0;
  for (const std::size_t moment : {std::size_t{0}, last})
    for (const double value : tracks.at(metric, moment)) {
      if (!std::isfinite(value)) continue;
      sum += value;
      squares += value * value;
      ++count;
    }
  return count < 2 ? 0 : std::sqrt(std::max(squares / count - sum / count * (sum / count), 0.0));
}

// The root mean square over the metrics of a head of its change in units of the spread over heads.
std::vector<RankedHead> by_change(const Tracks& tracks, std::size_t last) {
  struct Sum {
    double squares = 0, count = 0, most = -1;
    RankedHead shown;
  };
  std::map<std::tuple<HeadKind, std::int64_t, std::int64_t>, Sum> sums;
  for (const Metric& metric : head_metrics()) {
    const double spread = tracks.has(metric.name) && metric.averaged ? spread_of(tracks, metric.name, last) : 0;
    if (!(spread > 0)) continue;
    const std::int64_t heads = tracks.heads_of(metric.name);
    for (std::int64_t i = 0; i < tracks.counts.layers * heads; ++i) {
      const RankedHead head = head_of(tracks, metric, i / heads, i % heads, last);
      const double way = (head.value - head.start) / spread;
      if (!std::isfinite(way)) continue;
      Sum& sum = sums[{metric.kind, head.layer, head.head}];
      sum.squares += way * way;
      ++sum.count;
      if (std::fabs(way) > sum.most) sum.most = std::fabs(way), sum.shown = head;
    }
  }
  std::vector<RankedHead> ranked;
  for (auto& [key, sum] : sums) {
    sum.shown.score = std::sqrt(sum.squares / sum.count);
    ranked.push_back(std::move(sum.shown));
  }
  return ranked;
}

// The role of the built-in definition that asks for a minimum of this measurement as it is.
std::optional<AskedByRole> role_with(std::string_view metric) {
  for (const Role& role : default_role_definition().roles)
    for (const Minimum& minimum : role.minimums)
      if (score_name(minimum.score) == metric) return AskedByRole{role.name, minimum.least, role.minimums.size(), 0};
  return std::nullopt;
}

// "uniform attention gives"
std::string given_by(const Baseline& baseline) {
  return fmt::format("{} give{}", fmt::join(baseline.of, " "), baseline.of[1].ends_with('s') ? "" : "s");
}

std::string value_text(double value) {
  if (!std::isfinite(value)) return "-";
  const double size = std::fabs(value);
  return fixed_text(value, size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4);
}

}  // namespace

std::string RankedHead::name() const {
  return head_text(kind, layer, head);
}

BatchShape read_batch_shape(const std::filesystem::path& run) {
  const std::filesystem::path around = run_around(run);
  if (around.empty()) return {};
  const ordered_json manifest = read_manifest(around), config = manifest["config"].flatten();
  const auto size = [&](const char* pointer) {
    const auto found = config.find(pointer);
    return found != config.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
  };
  const std::int64_t seq_len = size("/train/seq_len");
  // Uniform attention within a window is another one in each layer.
  const ordered_json window = manifest.value("shortest_window", ordered_json());
  const bool in_windows = window.is_number_integer() && window.get<std::int64_t>() < seq_len;
  return {in_windows ? 0 : seq_len, size("/model/d_k"), seq_len * size("/train/batch"), in_windows};
}

Ranking rank_heads(const RunTracks& tracks, const BatchShape& shape, const RankingOptions& options) {
  if (options.by != change) metric_named(options.by, "--by");
  check_size("--top", options.top, 1, 1'000'000);
  const Tracks& source = source_of(tracks, options);
  Ranking ranking;
  ranking.options = options;
  ranking.source = source.source;
  std::size_t last = source.moments.size() - 1;
  if (options.step && source.moments.front().step > *options.step) fail_before_the_first(*options.step, source);
  while (options.step && source.moments[last].step > *options.step) --last;
  ranking.moment = source.moments[last];
  ranking.first = source.moments.front();
  ranking.measurements = last + 1;
  ranking.even = evenly_measured(source, last);
  if (options.layer && (*options.layer < 0 || *options.layer >= source.counts.layers))
    fail_input("--layer {}: the run has layers 0 to {}", *options.layer, source.counts.layers - 1);
  if (options.by == change && last == 0)
    fail_input("one measurement shows no change; name a metric with --by, such as --by sink");
  if (options.by == change) {
    ranking.ranked = by_change(source, last);
  } else {
    const Metric& metric = metric_named(options.by, "--by");
    const std::int64_t heads = source.heads_of(metric.name);
    for (std::int64_t i = 0; i < source.counts.layers * heads; ++i)
      ranking.ranked.push_back(head_of(source, metric, i / heads, i % heads, last));
    ranking.baseline = baseline_of(metric.name, shape);
    ranking.windows = shape.windows;
  }
  std::erase_if(ranking.ranked, [&](const RankedHead& head) {
    return !std::isfinite(head.score) || (options.layer && head.layer != *options.layer);
  });
  std::ranges::stable_sort(ranking.ranked, [&](const RankedHead& a, const RankedHead& b) {
    return options.lowest ? a.score < b.score : a.score > b.score;
  });
  ranking.heads = ranking.ranked.size();
  for (const RankedHead& head : ranking.ranked) {
    if (!ranking.baseline || !ranking.has_error()) break;
    const double beyond = head.value - ranking.baseline->value, error = std::isfinite(head.error) ? head.error : 0;
    const bool counts = std::fabs(beyond) > 2 * error && std::fabs(beyond) >= 0.05 * std::fabs(ranking.baseline->value);
    if (counts) ++(beyond > 0 ? ranking.above : ranking.below);
  }
  ranking.role = role_with(options.by);
  for (const RankedHead& head : ranking.ranked)
    if (ranking.role && head.value >= ranking.role->least) ++ranking.role->heads;
  ranking.ranked.resize(std::min(ranking.heads, static_cast<std::size_t>(options.top)));
  return ranking;
}

std::string to_terminal(const Ranking& ranking) {
  const RankingOptions& options = ranking.options;
  const bool one_moment = ranking.measurements == 1;
  std::string text;
  if (options.by == change) {
    text = fmt::format("heads that changed {}, step {} to {} ({} batch)\n\n  {:<8}{:<10}{}\n",
                       options.lowest ? "least" : "most", ranking.first.step, ranking.moment.step, ranking.source,
                       "head", "change", "most of it");
    for (const RankedHead& head : ranking.ranked)
      text +=
          fmt::format("  {:<8}{:<10.2f}{} {} → {}{}\n", head.name(), head.score, head.metric, value_text(head.start),
                      value_text(head.value), head.since ? fmt::format(", half of it by step {}", *head.since) : "");
    return text +
           "\nchange: root mean square over a head's measurements, each in units of its standard deviation over "
           "heads\nhalf of it by step: where the way is more than twice what it moves from one measurement to the "
           "next\n";
  }
  const Metric& metric = metric_named(options.by, "--by");
  text = fmt::format("{}: {}\n{} first{} ({} batch)\n\n  {:<8}{:<20}{}\n", metric.name, metric.meaning,
                     options.lowest ? "lowest" : "highest", at_step_text(ranking.moment), ranking.source, "head",
                     "value", one_moment ? "" : "at the start, half of the way by step");
  for (const RankedHead& head : ranking.ranked) {
    const std::string value = std::isfinite(head.error)
                                  ? fmt::format("{} ± {}", value_text(head.value), value_text(head.error))
                                  : value_text(head.value);
    text += fmt::format(
        "  {:<8}{:<{}}{}\n", head.name(), value, std::isfinite(head.error) ? 21 : 20,
        one_moment ? ""
                   : fmt::format("{}, {}", value_text(head.start), head.since ? std::to_string(*head.since) : "-"));
  }
  text += "\n";
  if (ranking.has_error())
    text += fmt::format(
        "±: how much it moves from one measurement to the next (root mean square of the last ones, "
        "over √2){}\n",
        ranking.source == "probe" ? "; other texts may give more" : "");
  if (ranking.role)
    text += fmt::format("{} of {} heads have {} or more, as the role {} asks{}\n", ranking.role->heads, ranking.heads,
                        value_text(ranking.role->least), ranking.role->name,
                        ranking.role->conditions > 1
                            ? fmt::format("; it has {} conditions: see headscope roles", ranking.role->conditions)
                            : "");
  if (!ranking.baseline)
    return text + (ranking.windows ? "nothing to compare with: under windows, uniform attention differs by layer\n"
                   : baseline_of(options.by, {.seq_len = 256, .d_k = 64})
                       ? "nothing to compare with: the run does not say its train.seq_len and model.d_k\n"
                       : "nothing to compare with: no value stands for a head that does nothing\n");
  text += fmt::format("{} {}", given_by(*ranking.baseline), value_text(ranking.baseline->value));
  if (!ranking.has_error())
    return text + fmt::format("; {} do not tell how much a value moves: heads are not counted\n",
                              ranking.even ? "fewer than three measurements" : "steps ever farther apart");
  return text + fmt::format("; beyond it by {}more than twice their ±: {} of {} heads above, {} below\n",
                            ranking.baseline->value == 0 ? "" : "5 % or more and by ", ranking.above, ranking.heads,
                            ranking.below);
}

ordered_json to_json(const Ranking& ranking) {
  ordered_json heads = ordered_json::array();
  for (const RankedHead& head : ranking.ranked)
    heads.push_back({{"head", head.name()},
                     {"layer", head.layer},
                     {"index", head.head},
                     {"kind", head_kind_names[static_cast<std::size_t>(head.kind)]},
                     {"metric", head.metric},
                     {"score", head.score},
                     {"value", head.value},
                     {"error", head.error},
                     {"start", head.start},
                     {"half_by_step", json_value(head.since)}});
  ordered_json object = {{"by", ranking.options.by},
                         {"lowest", ranking.options.lowest},
                         {"layer", json_value(ranking.options.layer)},
                         {"source", ranking.source},
                         {"step", ranking.moment.step},
                         {"tokens", ranking.moment.tokens},
                         {"measurements", ranking.measurements}};
  const auto count = [&](std::size_t n) { return ranking.has_error() ? ordered_json(n) : ordered_json(); };
  object["baseline"] = ranking.baseline ? ordered_json{{"value", ranking.baseline->value},
                                                       {"of", fmt::format("{}", fmt::join(ranking.baseline->of, " "))},
                                                       {"heads_above", count(ranking.above)},
                                                       {"heads_below", count(ranking.below)}}
                                        : ordered_json();
  object["role"] =
      ranking.role
          ? ordered_json{{"name", ranking.role->name}, {"least", ranking.role->least}, {"heads", ranking.role->heads}}
          : ordered_json();
  object["heads_in_all"] = ranking.heads;
  object["heads"] = std::move(heads);
  return object;
}

}  // namespace headscope
