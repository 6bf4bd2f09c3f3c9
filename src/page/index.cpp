#include "page/index.h"

#include <algorithm>
#include <cmath>

#include "figures/theme.h"
#include "page/index_parts.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

// More series than one run of 88m has: their last values are rounded to float32, to keep the index small.
constexpr std::size_t most_exact_values = 10000;

ordered_json theme_json(const Theme& theme) {
  return {{"paper", theme.paper},     {"ink", theme.ink},
          {"muted", theme.muted},     {"grid", theme.grid},
          {"absent", theme.absent},   {"categories", theme.categories},
          {"depth", theme.depth},     {"sequential", theme.sequential},
          {"ordered", theme.ordered}, {"diverging", theme.diverging}};
}

ordered_json metrics_json(const IndexParts& parts) {
  ordered_json list = ordered_json::array();
  for (const Metric& metric : head_metrics())
    if (parts.measured.contains(metric.name))
      list.push_back({{"name", metric.name},
                      {"group", metric_group_names[static_cast<std::size_t>(metric.group)]},
                      {"kind", head_kind_names[static_cast<std::size_t>(metric.kind)]},
                      {"unit", metric.unit},
                      {"meaning", metric.meaning},
                      {"averaged", metric.averaged},
                      {"index", metric.unit == index_unit}});
  return list;
}

ordered_json role_names_json(const IndexParts& parts) {
  ordered_json list = ordered_json::array();
  for (std::size_t i = 0; i < parts.role_names.size(); ++i) {
    const std::string& name = parts.role_names[i];
    list.push_back({{"name", name}, {"letter", std::string(1, parts.letters_of_roles[i])}, {"text", role_text(name)}});
  }
  return list;
}

ordered_json plasticity_json(const ReportRun& run, IndexParts& parts) {
  if (run.plasticity.is_null()) return nullptr;
  ordered_json object = run.plasticity;
  object["cells"] = run.plasticity_cells.rows() > 0 ? parts.columns(run.plasticity_cells) : ordered_json();
  return object;
}

// Runs whose heads correspond have the same number.
class SameHeads {
 public:
  int of(const ReportRun& run) {
    const std::string key = run.same_heads.empty() ? fmt::format("alone {}", numbers_.size()) : run.same_heads;
    return numbers_.try_emplace(key, static_cast<int>(numbers_.size())).first->second;
  }

 private:
  std::map<std::string, int> numbers_;
};

ordered_json run_json(const ReportRun& run, int same_heads, IndexParts& parts) {
  const HeadCounts counts = run.counts();
  ordered_json events = events_json(run, parts), levels = ordered_json::array(), condition;
  for (const LossLevel& level : run.levels) levels.push_back({{"name", level.name}, {"value", level.value}});
  if (run.condition)
    condition = {{"tag", run.condition->tag}, {"letter", run.condition->letter}, {"name", run.condition->name}};
  return {{"name", run.name},
          {"label", label_of(parts.data, run)},
          {"command", run.command},
          {"status", run.status},
          {"started", run.started},
          {"ended", or_null(run.ended)},
          {"condition", std::move(condition)},
          {"seed", or_null(run.seed)},
          {"layers", counts.layers},
          {"heads", {{"q", counts.query_heads}, {"k", counts.key_heads}}},
          {"d_k", run.d_k},
          {"same_heads", same_heads},
          {"sources", sources_json(run, parts)},
          {"roles", roles_json(run, parts)},
          {"steps", steps_json(run, parts)},
          {"probes", probes_json(run)},
          {"levels", std::move(levels)},
          {"events", std::move(events)},
          {"gains", gains_json(run, parts)},
          {"attention", attention_json(run, parts)},
          {"examples", examples_json(run, parts)},
          {"plasticity", plasticity_json(run, parts)},
          {"comparison", run.comparison},
          {"surgery", run.surgery}};
}

void say_what_is_left_out(IndexParts& parts) {
  const BlockPrecision& precision = parts.detail.precision;
  if (parts.thinned > 0)
    parts.say(fmt::format("{} of up to {} moments of each source are kept", parts.most_kept, parts.thinned));
  if (!precision.exact && !parts.measured.empty() && precision.bits < BlockPrecision().bits)
    parts.say(fmt::format("values have {} bits instead of {}", precision.bits, BlockPrecision().bits));
  if (parts.without_training) parts.say("measurements on training batches, where probes were measured");
  if (parts.attention_dropped)
    parts.say(parts.choice.heads.empty() ? "attention of heads without a role"
                                         : "attention of heads that were not chosen");
  const auto is_left_out = [&](const Metric& metric) {
    return !parts.choice.has_metric(metric.name) && std::ranges::any_of(parts.data.runs, [&](const ReportRun& run) {
      return run.tracks.probe.has(metric.name) || run.tracks.train.has(metric.name);
    });
  };
  if (std::ranges::any_of(head_metrics(), is_left_out)) parts.say("metrics that were not chosen");
  if (!parts.choice.heads.empty()) parts.say("heads that were not chosen");
}

}  // namespace

IndexParts::IndexParts(const ReportData& given, const Choice& chosen, const Detail& wanted)
    : data(given), choice(chosen), detail(wanted) {
  std::size_t values = 0;
  for (const ReportRun& run : data.runs)
    for (const Tracks* tracks : {&run.tracks.probe, &run.tracks.train})
      if (!tracks->moments.empty())
        for (const Metric& metric : head_metrics())
          values += static_cast<std::size_t>(tracks->counts.layers * (metric.kind == HeadKind::key
                                                                          ? tracks->counts.key_heads
                                                                          : tracks->counts.query_heads));
  exact_last = values <= most_exact_values;
  for (const ReportRun& run : data.runs) {
    if (!run.roles) continue;
    const RoleDefinition& definition = run.roles->roles.definition;
    const std::string letters = role_letters(definition);
    for (std::size_t i = 0; i < definition.roles.size(); ++i)
      if (std::ranges::find(role_names, definition.roles[i].name) == role_names.end()) {
        role_names.push_back(definition.roles[i].name);
        letters_of_roles += letters[i];
      }
  }
}

ordered_json IndexParts::block(std::string text) {
  content.blocks.push_back(std::move(text));
  return fmt::format("b{}", content.blocks.size() - 1);
}

ordered_json IndexParts::series(SeriesBlock coded) {
  return {{"block", block(std::move(coded.text))},
          {"codec", coded.codec},
          {"bits", coded.bits},
          {"low", coded.low},
          {"high", coded.high},
          {"scale", coded.log ? "log" : "linear"},
          {"error", coded.error}};
}

ordered_json IndexParts::columns(const NumberColumns& columns) {
  std::vector<double> all;
  for (const auto& values : columns.values) all.insert(all.end(), values.begin(), values.end());
  return {{"block", block(f32_block(all))}, {"rows", columns.rows()}, {"columns", columns.names}};
}

void IndexParts::say(std::string sentence) {
  if (std::ranges::find(content.left_out, sentence) == content.left_out.end())
    content.left_out.push_back(std::move(sentence));
}

std::optional<std::size_t> IndexParts::role_place(const RoleDefinition& definition, std::size_t label) const {
  if (label >= definition.roles.size()) return std::nullopt;
  return static_cast<std::size_t>(std::ranges::find(role_names, definition.roles[label].name) - role_names.begin());
}

double rounded_to_float(double value) {
  double read = value;
  parse_value(fmt::format("{}", static_cast<float>(value)), read);
  return read;
}

ordered_json places_json(std::span<const Moment> moments, const Places& places, std::int64_t Moment::*count) {
  ordered_json list = ordered_json::array();
  for (const std::size_t place : places) list.push_back(moments[place].*count);
  return list;
}

std::string label_of(const ReportData& data, const ReportRun& run) {
  const auto same_name = [&](const ReportRun& one) { return one.name == run.name; };
  if ((!run.condition || data.studies.size() > 1) && std::ranges::count_if(data.runs, same_name) > 1)
    return fmt::format("{} ({})", run.name, &run - data.runs.data() + 1);
  if (!run.condition || data.studies.size() > 1) return run.name;
  return run.seed ? fmt::format("{}, seed {}", run.condition->letter, *run.seed) : run.condition->letter;
}

std::size_t PageContent::bytes() const {
  std::size_t sum = 0;
  for (const std::string& one : blocks) sum += one.size();
  return sum;
}

PageContent page_content(const ReportData& data, const Choice& choice, const Detail& detail, double max_size,
                         const std::string& created) {
  IndexParts parts(data, choice, detail);
  SameHeads same_heads;
  ordered_json runs = ordered_json::array();
  for (const ReportRun& run : data.runs) runs.push_back(run_json(run, same_heads.of(run), parts));
  say_what_is_left_out(parts);
  PageContent& content = parts.content;
  content.exact_last = parts.exact_last;
  content.index = {{"format", 1},
                   {"version", HEADSCOPE_VERSION},
                   {"created", created},
                   {"title", data.title},
                   {"themes", {{"light", theme_json(light_theme())}, {"dark", theme_json(dark_theme())}}},
                   {"metrics", metrics_json(parts)},
                   {"roles", role_names_json(parts)},
                   {"runs", std::move(runs)},
                   {"study", data.studies.empty() ? ordered_json() : study_json(data.studies.front())},
                   {"reduced",
                    {{"bits", detail.precision.exact ? 32 : detail.precision.bits},
                     {"moments", parts.most_kept},
                     {"left_out", content.left_out},
                     {"max_size", max_size},
                     {"exact", detail.precision.exact}}}};
  return std::move(content);
}

}  // namespace headscope
