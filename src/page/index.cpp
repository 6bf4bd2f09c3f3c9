#include "page/index.h"

#include <algorithm>
#include <cmath>

#include "core/json_text.h"
#include "core/lists.h"
#include "figures/theme.h"
#include "study/verdict.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
using Places = std::vector<std::size_t>;

constexpr std::size_t most_gain_moments = 50;
constexpr std::string_view index_unit = "index";
// More series than one run of 88m has: their last values are rounded to float32, to keep the index small.
constexpr std::size_t most_exact_values = 10000;

ordered_json theme_json(const Theme& theme) {
  return {{"paper", theme.paper},     {"ink", theme.ink},
          {"muted", theme.muted},     {"grid", theme.grid},
          {"absent", theme.absent},   {"categories", theme.categories},
          {"depth", theme.depth},     {"sequential", theme.sequential},
          {"ordered", theme.ordered}, {"diverging", theme.diverging}};
}

// The shortest decimal that means the same float32.
double rounded_to_float(double value) {
  double read = value;
  parse_value(fmt::format("{}", static_cast<float>(value)), read);
  return read;
}

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

// Builds the index and the blocks.
class Content {
 public:
  Content(const ReportData& data, const Choice& choice, const Detail& detail)
      : data_(data), choice_(choice), detail_(detail) {
    std::size_t values = 0;
    for (const ReportRun& run : data.runs)
      for (const Tracks* tracks : {&run.tracks.probe, &run.tracks.train})
        if (!tracks->moments.empty())
          for (const Metric& metric : head_metrics())
            values += static_cast<std::size_t>(
                tracks->counts.layers *
                (metric.kind == HeadKind::key ? tracks->counts.key_heads : tracks->counts.query_heads));
    exact_last_ = values <= most_exact_values;
    for (const ReportRun& run : data.runs)
      if (run.roles)
        for (const Role& role : run.roles->roles.definition.roles)
          if (std::ranges::find(role_names_, role.name) == role_names_.end()) {
            role_names_.push_back(role.name);
            const RoleDefinition& definition = run.roles->roles.definition;
            letters_ += role_letters(definition)[static_cast<std::size_t>(&role - definition.roles.data())];
          }
  }

  PageContent take(double max_size, const std::string& created) {
    ordered_json runs = ordered_json::array();
    for (const ReportRun& run : data_.runs) runs.push_back(run_json(run));
    ordered_json studies = ordered_json::array();
    for (const ReportStudy& study : data_.studies) studies.push_back(study_json(study));
    say_what_is_left_out();
    content_.exact_last = exact_last_;
    content_.index = {{"format", 1},
                      {"version", HEADSCOPE_VERSION},
                      {"created", created},
                      {"title", data_.title},
                      {"themes", {{"light", theme_json(light_theme())}, {"dark", theme_json(dark_theme())}}},
                      {"metrics", metrics_json()},
                      {"roles", roles_list()},
                      {"runs", std::move(runs)},
                      {"study", studies.empty() ? ordered_json() : studies[0]},
                      {"reduced",
                       {{"bits", detail_.precision.exact ? 32 : detail_.precision.bits},
                        {"moments", most_kept_},
                        {"left_out", content_.left_out},
                        {"max_size", max_size},
                        {"exact", detail_.precision.exact}}}};
    if (studies.size() > 1) content_.index["studies"] = std::move(studies);
    return std::move(content_);
  }

 private:
  ordered_json block(std::string text) {
    content_.blocks.push_back(std::move(text));
    return fmt::format("b{}", content_.blocks.size() - 1);
  }

  [[nodiscard]] bool wants(std::string_view metric) const { return choice_.has_metric(metric); }

  [[nodiscard]] ordered_json metrics_json() const {
    ordered_json list = ordered_json::array();
    for (const Metric& metric : head_metrics())
      if (measured_.contains(metric.name))
        list.push_back({{"name", metric.name},
                        {"group", metric_group_names[static_cast<std::size_t>(metric.group)]},
                        {"kind", head_kind_names[static_cast<std::size_t>(metric.kind)]},
                        {"unit", metric.unit},
                        {"meaning", metric.meaning},
                        {"averaged", metric.averaged},
                        {"index", metric.unit == index_unit}});
    return list;
  }

  [[nodiscard]] ordered_json roles_list() const {
    ordered_json list = ordered_json::array();
    for (std::size_t i = 0; i < role_names_.size(); ++i) {
      std::string text = role_names_[i];
      std::ranges::replace(text, '_', ' ');
      list.push_back({{"name", role_names_[i]}, {"letter", std::string(1, letters_[i])}, {"text", text}});
    }
    return list;
  }

  // Of a label of a definition: its place in the list of roles.
  [[nodiscard]] std::optional<std::size_t> role_place(const RoleDefinition& definition, std::size_t label) const {
    if (label >= definition.roles.size()) return std::nullopt;
    return static_cast<std::size_t>(std::ranges::find(role_names_, definition.roles[label].name) - role_names_.begin());
  }

  // The steps, or the tokens, of the moments that are kept.
  [[nodiscard]] static ordered_json places_json(std::span<const Moment> moments, const Places& places,
                                                std::int64_t Moment::*count) {
    ordered_json list = ordered_json::array();
    for (const std::size_t place : places) list.push_back(moments[place].*count);
    return list;
  }

  ordered_json coded_json(SeriesBlock coded) {
    return {{"block", block(std::move(coded.text))},
            {"codec", coded.codec},
            {"bits", coded.bits},
            {"low", coded.low},
            {"high", coded.high},
            {"scale", coded.log ? "log" : "linear"},
            {"error", coded.error}};
  }

  // A head of a series is in the page: all are, or it was chosen, or a chosen query head reads it.
  [[nodiscard]] bool is_chosen(const Tracks& tracks, HeadKind kind, std::int64_t layer, std::int64_t head) const {
    if (choice_.heads.empty()) return true;
    return std::ranges::any_of(choice_.heads, [&](const auto& chosen) {
      return chosen.first == layer &&
             head == (kind == HeadKind::key ? tracks.key_head_of(chosen.second) : chosen.second);
    });
  }

  ordered_json series_json(const Tracks& tracks, const Metric& metric, const Places& places) {
    const std::int64_t heads = tracks.heads_of(metric.name);
    const auto all = static_cast<std::size_t>(tracks.counts.layers * heads);
    std::vector<double> values(all * places.size(), missing);
    std::vector<bool> chosen(all);
    for (std::size_t head = 0; head < all; ++head)
      chosen[head] = is_chosen(tracks, metric.kind, static_cast<std::int64_t>(head) / heads,
                               static_cast<std::int64_t>(head) % heads);
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::span<const double> at = tracks.at(metric.name, places[i]);
      for (std::size_t head = 0; head < all; ++head)
        if (chosen[head]) values[head * places.size() + i] = at[head];
    }
    SeriesBlock coded = series_block(values, places.size(), detail_.precision, metric.unit == index_unit);
    MetricError& error = content_.errors[std::string(metric.name)];
    if (coded.log)
      error.relative = std::max(error.relative, std::expm1(coded.error));
    else
      error.absolute = std::max(error.absolute, coded.error);
    ordered_json last = ordered_json::array();
    for (std::size_t head = 0; head < all; ++head) {
      const double value = values[(head + 1) * places.size() - 1];
      last.push_back(exact_last_ || !std::isfinite(value) ? value : rounded_to_float(value));
    }
    measured_.insert(metric.name);
    ordered_json series = {{"metric", metric.name}, {"heads", heads}};
    series.update(coded_json(std::move(coded)));
    series["last"] = std::move(last);
    return series;
  }

  Places places_of_source(const ReportRun& run, const Tracks& tracks) {
    std::set<std::int64_t> changes;
    if (run.roles && run.roles->roles.source == tracks.source)
      for (const RoleTransition& transition : run.roles->roles.timeline.transitions)
        changes.insert(transition.moment.step);
    Places places = kept_moments(tracks.moments, changes, detail_.moments);
    most_kept_ = std::max(most_kept_, places.size());
    const std::size_t of = std::max(tracks.measured, tracks.moments.size());
    if (places.size() < of) thinned_ = std::max(thinned_, of);
    return places;
  }

  ordered_json sources_json(const ReportRun& run) {
    ordered_json list = ordered_json::array();
    for (const Tracks* tracks : {&run.tracks.probe, &run.tracks.train}) {
      if (tracks->moments.empty()) continue;
      if (tracks == &run.tracks.train && !detail_.training_batches && !run.tracks.probe.moments.empty()) {
        without_training_ = true;
        continue;
      }
      const Places places = places_of_source(run, *tracks);
      ordered_json series = ordered_json::array();
      for (const Metric& metric : head_metrics())
        if (tracks->has(metric.name) && wants(metric.name)) series.push_back(series_json(*tracks, metric, places));
      list.push_back({{"name", tracks->source},
                      {"step", places_json(tracks->moments, places, &Moment::step)},
                      {"tokens", places_json(tracks->moments, places, &Moment::tokens)},
                      {"of", std::max(tracks->measured, tracks->moments.size())},
                      {"series", std::move(series)}});
    }
    return list;
  }

  // The minimums of the head's role, or of the role that it comes nearest to.
  [[nodiscard]] ordered_json tests_json(const HeadRole& head, const RoleDefinition& definition) const {
    const auto shortfall = [&](const Role& role) {
      double sum = 0;
      for (const Minimum& minimum : role.minimums) {
        const double value = head.scores[minimum.score];
        sum += std::isfinite(value) ? std::max(0.0, minimum.least - value) : 1;
      }
      return sum;
    };
    std::size_t label = head.label;
    if (label >= definition.roles.size()) {
      const auto nearest = std::ranges::min_element(definition.roles, {}, shortfall);
      if (nearest == definition.roles.end()) return ordered_json::array();
      label = static_cast<std::size_t>(nearest - definition.roles.begin());
    }
    ordered_json tests = ordered_json::array();
    for (const Minimum& minimum : definition.roles[label].minimums) {
      const double value = head.scores[minimum.score];
      tests.push_back({{"role", or_null(role_place(definition, label))},
                       {"metric", metric_of(minimum.score)},
                       {"score", score_name(minimum.score)},
                       {"value", rounded_to_float(value)},
                       {"minimum", minimum.least},
                       {"maximum", nullptr},
                       {"passed", value >= minimum.least}});
    }
    return tests;
  }

  ordered_json roles_json(const ReportRun& run) {
    if (!run.roles) return nullptr;
    const RoleCourse& course = *run.roles;
    const RolesResult& roles = course.roles;
    std::vector<Moment> moments;
    std::set<std::int64_t> changes;
    for (const MomentLabels& labels : course.labels) moments.push_back(labels.moment);
    for (const RoleTransition& transition : roles.timeline.transitions) changes.insert(transition.moment.step);
    const Places places = kept_moments(moments, changes, detail_.moments);
    std::string bytes;
    for (const std::size_t place : places)
      for (const std::size_t label : course.labels[place].labels)
        bytes += static_cast<char>(role_place(roles.definition, label).value_or(no_role));
    ordered_json scores = ordered_json::array();
    for (std::size_t i = 0; i < roles.heads.size(); ++i) {
      std::size_t first = course.labels.size();
      while (first > 0 && course.labels[first - 1].labels[i] == roles.heads[i].label) --first;
      const auto heads = static_cast<std::size_t>(roles.counts.query_heads);
      scores.push_back(
          {{"layer", i / heads},
           {"head", i % heads},
           {"role", or_null(role_place(roles.definition, roles.heads[i].label))},
           {"since", first < course.labels.size() ? ordered_json(course.labels[first].moment.step) : ordered_json()},
           {"tests", tests_json(roles.heads[i], roles.definition)}});
    }
    ordered_json transitions = ordered_json::array();
    constexpr std::size_t most_transitions = 500;  // more would make most of the index
    for (const RoleTransition& change : roles.timeline.transitions) {
      if (transitions.size() == most_transitions) {
        say(fmt::format("changes of roles after the first {}", most_transitions));
        break;
      }
      transitions.push_back({{"step", change.moment.step},
                             {"tokens", change.moment.tokens},
                             {"layer", change.layer},
                             {"head", change.head},
                             {"from", or_null(role_place(roles.definition, change.from))},
                             {"to", or_null(role_place(roles.definition, change.to))}});
    }
    return {{"definition", roles.definition.id},
            {"source", roles.source},
            {"step", places_json(moments, places, &Moment::step)},
            {"tokens", places_json(moments, places, &Moment::tokens)},
            {"of_head", {{"block", block(block_text(bytes))}}},
            {"scores", std::move(scores)},
            {"transitions", std::move(transitions)}};
  }

  ordered_json columns_block(const NumberColumns& columns) {
    std::vector<double> all;
    for (const auto& values : columns.values) all.insert(all.end(), values.begin(), values.end());
    return {{"block", block(f32_block(all))}, {"rows", columns.rows()}, {"columns", columns.names}};
  }

  ordered_json steps_of(const ReportRun& run) {
    if (run.steps.empty()) return nullptr;
    NumberColumns columns{
        {"step", "tokens", "loss", "loss_min", "loss_max", "lr", "adamw_lr", "grad_norm", "tokens_per_s"}, {}};
    columns.values.resize(columns.names.size());
    for (const StepBucket& bucket : run.steps) {
      const StepRow& row = bucket.last;
      const double values[] = {static_cast<double>(row.moment.step),
                               static_cast<double>(row.moment.tokens),
                               row.loss,
                               bucket.loss_min,
                               bucket.loss_max,
                               row.lr,
                               row.adamw_lr,
                               row.grad_norm,
                               row.tokens_per_s};
      for (std::size_t i = 0; i < columns.values.size(); ++i) columns.values[i].push_back(values[i]);
    }
    return columns_block(columns);
  }

  static ordered_json probes_of(const ReportRun& run) {
    if (run.probes.empty()) return nullptr;
    ordered_json object = {{"step", ordered_json::array()},
                           {"tokens", ordered_json::array()},
                           {"loss", ordered_json::array()},
                           {"val_loss", ordered_json::array()}};
    for (const std::size_t i : evenly_spaced(run.probes.size(), most_step_buckets)) {
      const ProbeLosses& probe = run.probes[i];
      object["step"].push_back(probe.moment.step);
      object["tokens"].push_back(probe.moment.tokens);
      object["loss"].push_back(rounded_to_float(probe.train));
      object["val_loss"].push_back(rounded_to_float(probe.validation));
    }
    return object;
  }

  // [kind q, k][layer][dimension][moment]
  ordered_json gains_json(const ReportRun& run) {
    const std::vector<LayerGains>& gains = run.tracks.gains;
    if (gains.empty()) return nullptr;
    std::vector<Moment> moments;
    for (const LayerGains& one : gains)
      if (moments.empty() || moments.back() != one.moment) moments.push_back(one.moment);
    const Places places = kept_moments(
        moments, {}, detail_.precision.exact ? moments.size() : std::min(detail_.moments / 6 + 2, most_gain_moments));
    std::map<std::int64_t, std::size_t> place_of_step;
    for (std::size_t i = 0; i < places.size(); ++i) place_of_step[moments[places[i]].step] = i;
    const auto layers = static_cast<std::size_t>(run.counts().layers);
    const std::size_t d_k = std::max(gains.front().q.size(), gains.front().k.size());
    std::vector<double> values(2 * layers * d_k * places.size(), missing);
    for (const LayerGains& one : gains) {
      const auto place = place_of_step.find(one.moment.step);
      if (place == place_of_step.end()) continue;
      for (std::size_t kind = 0; kind < 2; ++kind) {
        const std::vector<double>& vector = kind == 0 ? one.q : one.k;
        for (std::size_t i = 0; i < std::min(d_k, vector.size()); ++i)
          values[((kind * layers + static_cast<std::size_t>(one.layer)) * d_k + i) * places.size() + place->second] =
              vector[i];
      }
    }
    ordered_json coded = coded_json(series_block(values, places.size(), detail_.precision));
    coded["step"] = places_json(moments, places, &Moment::step);
    coded["tokens"] = places_json(moments, places, &Moment::tokens);
    coded["layers"] = layers;
    coded["d_k"] = d_k;
    return coded;
  }

  [[nodiscard]] bool keeps_attention(const ReportRun& run, std::int64_t layer, std::int64_t head) const {
    if (!choice_.heads.empty()) return choice_.heads.contains({layer, head});
    if (detail_.all_attention || !run.roles) return detail_.all_attention;
    const RolesResult& roles = run.roles->roles;
    const auto place = static_cast<std::size_t>(layer * roles.counts.query_heads + head);
    return place < roles.heads.size() && roles.heads[place].label < roles.definition.roles.size();
  }

  ordered_json attention_json(const ReportRun& run) {
    const AttentionData& data = run.attention;
    if (data.heads.empty()) return nullptr;
    std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> heads;
    std::size_t dropped = 0;
    for (const ShownAttention& one : data.heads)
      if (keeps_attention(run, one.layer, one.head))
        heads.try_emplace({one.layer, one.head}, 0);
      else
        ++dropped;
    if (dropped > 0) attention_dropped_ = true;
    if (heads.empty()) return nullptr;
    ordered_json texts = ordered_json::array(), names = ordered_json::array(), blocks = ordered_json::array();
    for (const auto& pieces : data.texts) texts.push_back({{"pieces", pieces}});
    std::size_t next = 0;
    for (auto& [head, place] : heads) {
      place = next++;
      names.push_back({head.first, head.second});
    }
    for (std::size_t text = 0; text < data.texts.size(); ++text) blocks.push_back(ordered_json::array_t(heads.size()));
    for (const ShownAttention& one : data.heads)
      if (const auto place = heads.find({one.layer, one.head}); place != heads.end())
        blocks[one.text][place->second] = block(block_text(one.bytes));
    return {{"texts", std::move(texts)}, {"heads", std::move(names)}, {"blocks", std::move(blocks)}};
  }

  // A block of JSON for each layer.
  ordered_json examples_json(const ReportRun& run) {
    if (run.examples.empty()) return nullptr;
    std::map<std::int64_t, ordered_json> layers;
    for (const ShownExample& one : run.examples) {
      if (!choice_.heads.empty() && !choice_.heads.contains({one.layer, one.head})) continue;
      ordered_json weights = ordered_json::array();
      for (const char byte : one.bytes) weights.push_back(static_cast<unsigned char>(byte));
      layers[one.layer].push_back({{"head", one.head},
                                   {"quantile", rounded_to_float(one.quantile)},
                                   {"strength", rounded_to_float(one.strength)},
                                   {"document", one.document},
                                   {"query", one.query},
                                   {"key", one.key},
                                   {"query_at", one.query_at},
                                   {"key_at", or_null(one.key_at)},
                                   {"pieces", one.pieces},
                                   {"weights", std::move(weights)}});
    }
    ordered_json blocks = ordered_json::object();
    for (const auto& [layer, list] : layers) blocks[std::to_string(layer)] = block(block_text(json_line(list)));
    return {{"blocks", std::move(blocks)}};
  }

  ordered_json plasticity_json(const ReportRun& run) {
    if (run.plasticity.is_null()) return nullptr;
    ordered_json object = run.plasticity;
    object["cells"] = run.plasticity_cells.rows() > 0 ? columns_block(run.plasticity_cells) : ordered_json();
    return object;
  }

  int same_heads(const ReportRun& run) {
    const std::string key = run.same_heads.empty() ? fmt::format("alone {}", same_heads_.size()) : run.same_heads;
    return same_heads_.try_emplace(key, static_cast<int>(same_heads_.size())).first->second;
  }

  ordered_json run_json(const ReportRun& run) {
    const HeadCounts counts = run.counts();
    ordered_json events = ordered_json::array(), levels = ordered_json::array();
    for (const TrainingEvent& event : run.events)
      events.push_back({{"time", event.time},
                        {"step", event.moment.step},
                        {"tokens", event.moment.tokens},
                        {"kind", event.kind},
                        {"text", event.text}});
    if (run.events_left_out > 0) say(fmt::format("{}: events before the last {}", run.name, most_events));
    for (const LossLevel& level : run.levels) levels.push_back({{"name", level.name}, {"value", level.value}});
    ordered_json condition;
    if (run.condition)
      condition = {{"tag", run.condition->tag}, {"letter", run.condition->letter}, {"name", run.condition->name}};
    return {{"name", run.name},
            {"command", run.command},
            {"status", run.status},
            {"started", run.started},
            {"ended", or_null(run.ended)},
            {"condition", std::move(condition)},
            {"seed", or_null(run.seed)},
            {"layers", counts.layers},
            {"heads", {{"q", counts.query_heads}, {"k", counts.key_heads}}},
            {"d_k", run.d_k},
            {"same_heads", same_heads(run)},
            {"sources", sources_json(run)},
            {"roles", roles_json(run)},
            {"steps", steps_of(run)},
            {"probes", probes_of(run)},
            {"levels", std::move(levels)},
            {"events", std::move(events)},
            {"gains", gains_json(run)},
            {"attention", attention_json(run)},
            {"examples", examples_json(run)},
            {"plasticity", plasticity_json(run)},
            {"comparison", run.comparison},
            {"surgery", run.surgery}};
  }

  static ordered_json study_json(const ReportStudy& report) {
    const StudyResult& result = report.result;
    const Verdict& verdict = result.verdict;
    const ordered_json all = verdict_json(result);
    ordered_json seeds = ordered_json::array(), conditions = ordered_json::array(), effects = ordered_json::array();
    for (const SeedRuns& seed : report.study.seeds) seeds.push_back(seed.name);
    for (std::size_t i = 0; i < verdict.conditions.size(); ++i) {
      const ConditionValues& values = verdict.conditions[i];
      if (values.runs == 0) continue;
      const MeanInterval mean = verdict.mean_pr(i);
      conditions.push_back({{"tag", values.condition.tag},
                            {"letter", values.condition.letter},
                            {"name", values.condition.name},
                            {"mean", mean.mean},
                            {"low", mean.low},
                            {"high", mean.high},
                            {"collapse", finite_mean(values.collapse()).mean},
                            {"values", values.end}});
    }
    ordered_json by_layer = ordered_json::object();
    for (std::size_t i = 0; i < verdict.effects.size(); ++i) {
      const Effect& effect = verdict.effects[i];
      ordered_json object = {{"name", effect.contrast.name}, {"pair", pair_text(verdict, effect.contrast)}};
      ordered_json numbers = all.at("effects").at(effect.contrast.name);
      numbers.erase("by_layer");
      object.update(numbers);
      effects.push_back(std::move(object));
      ordered_json layers = {{"difference", ordered_json::array()},
                             {"error", ordered_json::array()},
                             {"low", ordered_json::array()},
                             {"high", ordered_json::array()}};
      for (const MeanInterval& layer : result.details[i].layers) {
        layers["difference"].push_back(layer.mean);
        layers["error"].push_back(layer.standard_error);
        layers["low"].push_back(layer.low);
        layers["high"].push_back(layer.high);
      }
      by_layer[effect.contrast.name] = std::move(layers);
    }
    ordered_json tokens = ordered_json::array(), conclusions = ordered_json::array(), courses = ordered_json::object();
    for (const Reading& reading : result.over_time) {
      tokens.push_back(reading.tokens);
      conclusions.push_back(conclusion_name(reading.verdict.conclusion));
      for (const Effect& effect : verdict.effects) {
        const Effect* then = reading.verdict.find(effect.contrast.name);
        ordered_json& course = courses[effect.contrast.name];
        course["difference"].push_back(then != nullptr ? then->test.difference.mean : missing);
        course["low"].push_back(then != nullptr ? then->test.difference.low : missing);
        course["high"].push_back(then != nullptr ? then->test.difference.high : missing);
      }
    }
    ordered_json measures = ordered_json::array();
    for (const MeasureVerdict& measure : result.measures) {
      ordered_json object = {{"name", measure.name}};
      object.update(all.at("measures").at(measure.name));
      measures.push_back(std::move(object));
    }
    return {{"name", report.name},
            {"tau", verdict.tau},
            {"conclusion", conclusion_name(verdict.conclusion)},
            {"sentence", verdict.sentence},
            {"descriptive", verdict.descriptive},
            {"kill_criterion", or_null(verdict.kill_criterion)},
            {"kill_supported", or_null(verdict.kill_supported)},
            {"tokens", result.tokens},
            {"seeds", std::move(seeds)},
            {"conditions", std::move(conditions)},
            {"effects", std::move(effects)},
            {"over_time",
             {{"tokens", std::move(tokens)}, {"effects", std::move(courses)}, {"conclusion", std::move(conclusions)}}},
            {"by_layer", std::move(by_layer)},
            {"measures", std::move(measures)}};
  }

  void say(std::string sentence) {
    if (std::ranges::find(content_.left_out, sentence) == content_.left_out.end())
      content_.left_out.push_back(std::move(sentence));
  }

  void say_what_is_left_out() {
    if (thinned_ > 0) say(fmt::format("{} of up to {} moments of each source are kept", most_kept_, thinned_));
    if (!detail_.precision.exact && !measured_.empty() && detail_.precision.bits < BlockPrecision().bits)
      say(fmt::format("values have {} bits instead of {}", detail_.precision.bits, BlockPrecision().bits));
    if (without_training_) say("measurements on training batches, where probes were measured");
    if (attention_dropped_)
      say(choice_.heads.empty() ? "attention of heads without a role" : "attention of heads that were not chosen");
    if (!choice_.metrics.empty()) say("metrics that were not chosen");
    if (!choice_.heads.empty()) say("heads that were not chosen");
  }

  const ReportData& data_;
  const Choice& choice_;
  const Detail& detail_;
  PageContent content_;
  std::set<std::string_view> measured_;  // metrics that a series has
  std::vector<std::string> role_names_;
  std::string letters_;
  std::map<std::string, int> same_heads_;
  bool exact_last_ = true;
  std::size_t most_kept_ = 0, thinned_ = 0;
  bool without_training_ = false, attention_dropped_ = false;
};

}  // namespace

std::size_t PageContent::bytes() const {
  std::size_t sum = 0;
  for (const std::string& one : blocks) sum += one.size();
  return sum;
}

PageContent page_content(const ReportData& data, const Choice& choice, const Detail& detail, double max_size,
                         const std::string& created) {
  return Content(data, choice, detail).take(max_size, created);
}

}  // namespace headscope
