#include "page/html.h"

#include <algorithm>
#include <cmath>

#include "core/console.h"
#include "core/json_text.h"
#include "core/text.h"
#include "heads/findings/answer.h"
#include "heads/inspection.h"
#include "page/block.h"
#include "page/formulas.h"
#include "page/sha256.h"
#include "page/web_files.h"
#include "run/manifest.h"
#include "study/verdict.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_transition_rows = 200;
constexpr std::size_t most_table_rows = 2000;
constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// The length of the UTF-8 sequence at the start of the text; 0: it is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool beyond = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return overlong || beyond ? 0 : length;
}

// Values that an exact table shows: six digits.
std::string exact_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "–";
}

std::string element(std::string_view name, std::string_view text) {
  return fmt::format("<{0}>{1}</{0}>", name, escaped(text));
}

std::string view(std::string_view name) {
  return fmt::format("<div class=\"view\" data-view=\"{}\"></div>\n", name);
}

std::string row_html(std::string_view cell, const std::vector<std::string>& cells, std::string_view attributes = "") {
  std::string text = fmt::format("<tr{}>", attributes);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const bool names_the_row = cell == "td" && i == 0;
    text += names_the_row  ? fmt::format("<th scope=\"row\">{}</th>", escaped(cells[i]))
            : cell == "th" ? fmt::format("<th scope=\"col\">{}</th>", escaped(cells[i]))
                           : element(cell, cells[i]);
  }
  return text + "</tr>\n";
}

// Tables that may be long scroll inside their frame.
std::string table_html(const TextTable& table, const std::vector<std::string>& attributes = {}) {
  std::string text = fmt::format("<div class=\"frame\"><table class=\"{}\">\n", escaped(table.kind));
  text += element("caption", table.caption) + "\n<thead>" + row_html("th", table.head) + "</thead>\n<tbody>\n";
  const std::size_t shown = std::min(table.rows.size(), most_table_rows);
  for (std::size_t i = 0; i < shown; ++i)
    text += row_html("td", table.rows[i], i < attributes.size() ? attributes[i] : "");
  text += "</tbody></table></div>\n";
  const std::size_t left_out = table.left_out + table.rows.size() - shown;
  if (left_out > 0)
    text += fmt::format("<p class=\"note\">{} more rows are not shown.</p>\n",
                        with_separators(static_cast<std::int64_t>(left_out)));
  return text;
}

std::string section(std::string_view id, std::string_view heading, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, escaped(heading), content);
}

struct Fact {
  std::string name, text;
};

std::string status_text(const ReportRun& run) {
  if (!run.progress || run.status != status_name(RunStatus::running)) return run.status;
  const TrainingProgress& now = *run.progress;
  std::string text = fmt::format("{}, step {} of {} ({})", run.status, now.moment.step, now.steps, now.phase);
  if (std::isfinite(now.seconds_left)) text += fmt::format(", {} left", format_duration(now.seconds_left));
  return text;
}

std::string model_text(const ReportRun& run) {
  const ordered_json config =
      run.manifest.is_object() ? run.manifest.value("config", ordered_json::object()) : ordered_json::object();
  std::string text = text_at(config, "preset");
  const HeadCounts counts = run.counts();
  if (counts.layers > 0)
    text += fmt::format("{}{}, each with {} and {}", text.empty() ? "" : ", ",
                        counted(static_cast<std::size_t>(counts.layers), "layer"),
                        counted(static_cast<std::size_t>(counts.query_heads), "query head"),
                        counted(static_cast<std::size_t>(counts.key_heads), "key head"));
  const ordered_json parameters =
      run.manifest.is_object() ? run.manifest.value("parameters", ordered_json()) : ordered_json();
  if (parameters.is_number_integer())
    text += fmt::format("{}{} parameters", text.empty() ? "" : ", ", with_separators(parameters.get<std::int64_t>()));
  return text;
}

double last_finite(const std::vector<ProbeLosses>& probes, double ProbeLosses::*loss) {
  for (auto probe = probes.rbegin(); probe != probes.rend(); ++probe)
    if (std::isfinite((*probe).*loss)) return (*probe).*loss;
  return missing;
}

double training_loss(const ReportRun& run) {
  return run.steps.empty() ? last_finite(run.probes, &ProbeLosses::train) : run.steps.back().last.loss;
}

std::optional<Moment> last_moment(const ReportRun& run) {
  std::optional<Moment> last;
  const auto see = [&](const Moment& moment) {
    if (!last || moment.step > last->step) last = moment;
  };
  if (!run.steps.empty()) see(run.steps.back().last.moment);
  if (!run.probes.empty()) see(run.probes.back().moment);
  for (const Tracks* tracks : {&run.tracks.train, &run.tracks.probe})
    if (!tracks->moments.empty()) see(tracks->moments.back());
  return last;
}

std::string roles_sentence(const ReportRun& run) {
  if (!run.roles) return "";
  const RolesResult& roles = run.roles->roles;
  const std::vector<std::int64_t> counts = roles.role_counts();
  std::vector<std::string> parts;
  std::int64_t with_role = 0;
  for (std::size_t label = 0; label < roles.definition.roles.size(); ++label) {
    if (counts[label] == 0) continue;
    with_role += counts[label];
    std::string name(roles.definition.name_of(label));
    std::ranges::replace(name, '_', ' ');
    parts.push_back(fmt::format("{} {}", counts[label], name));
  }
  const std::size_t all = roles.heads.size();
  if (with_role == 0)
    return fmt::format("None of {} query heads has a role by the definition {}.", all, roles.definition.id);
  return fmt::format("{} of {} query heads have a role: {}.", with_role, all, joined(parts));
}

// A published model says nothing of its training: its one moment is step 0.
bool says_its_training(const ReportRun& run, const Moment& moment) {
  return moment.step > 0 || moment.tokens > 0 || run.command != inspect_command;
}

// What happened, in one or two sentences.
std::string verdict_text(const ReportData& data) {
  if (!data.studies.empty()) return data.studies.front().result.verdict.sentence;
  const ReportRun& run = data.runs.front();
  std::string text;
  const std::optional<Moment> last = last_moment(run);
  const double loss = training_loss(run), val_loss = last_finite(run.probes, &ProbeLosses::validation);
  if (last && (std::isfinite(loss) || std::isfinite(val_loss))) {
    const std::string when = says_its_training(run, *last) ? fmt::format("At {} the", moment_text(*last)) : "The";
    if (std::isfinite(loss)) text = fmt::format("{} training loss is {}", when, fixed_text(loss, 3));
    if (std::isfinite(val_loss))
      text += std::isfinite(loss) ? fmt::format(" and the validation loss {}", fixed_text(val_loss, 3))
                                  : fmt::format("{} validation loss is {}", when, fixed_text(val_loss, 3));
    text += ". ";
  }
  if (data.runs.size() > 1) text = fmt::format("{}: {}", run.name, text);
  if (!run.comparison.is_null() || !run.surgery.is_null() || !run.plasticity.is_null())
    for (const TextTable& table : run.tables) text += table.caption + ". ";
  return text + roles_sentence(run);
}

std::vector<Fact> facts_of(const ReportData& data, const ordered_json& index) {
  std::vector<Fact> facts;
  const auto add = [&](const char* name, std::string text) {
    if (!text.empty()) facts.push_back({name, std::move(text)});
  };
  if (!data.runs.empty()) {
    const ReportRun& run = data.runs.front();
    std::map<std::string, int> states;
    for (const ReportRun& one : data.runs) ++states[status_text(one)];
    std::vector<std::string> parts;
    for (const auto& [state, count] : states)
      parts.push_back(data.runs.size() == 1 ? state : fmt::format("{} {}", count, state));
    add("status", joined(parts));
    add("command", run.command);
    add("model", model_text(run));
    if (const auto last = last_moment(run); last && says_its_training(run, *last)) add("trained", moment_text(*last));
    const double val_loss = last_finite(run.probes, &ProbeLosses::validation);
    if (data.runs.size() == 1 && std::isfinite(training_loss(run)))
      add("training loss", fixed_text(training_loss(run), 4));
    if (data.runs.size() == 1 && std::isfinite(val_loss)) add("validation loss", fixed_text(val_loss, 4));
  }
  if (!data.studies.empty()) {
    add("seeds", seeds_text(data.studies.front().result.verdict));
    add("conclusion", conclusion_text(data.studies.front().result.verdict));
  } else if (!data.runs.empty() && data.runs.front().seed) {
    add("seed", fmt::format("{}", *data.runs.front().seed));
  }
  if (!data.runs.empty()) {
    add("device", data.runs.front().device);
    add("started", data.runs.front().started);
    std::string ended;  // the times sort as texts; none while a run goes on
    for (const ReportRun& run : data.runs) ended = std::max(ended, run.ended.value_or("\x7f"));
    if (ended != "\x7f") add("ended", ended);
  }
  add("version", "headscope " + text_at(index, "version"));
  add("page written", text_at(index, "created"));
  return facts;
}

std::string header_html(const ReportData& data, const ordered_json& index) {
  std::string text =
      "<header>\n<button id=\"theme\" type=\"button\">Theme</button>\n" + element("h1", data.title) + "\n";
  if (const std::string verdict = verdict_text(data); !verdict.empty())
    text += fmt::format("<p class=\"verdict\">{}</p>\n", escaped(verdict));
  text += "<dl class=\"facts\">\n";
  for (const Fact& fact : facts_of(data, index))
    text += "<div>" + element("dt", fact.name) + element("dd", fact.text) + "</div>\n";
  return text + "</dl>\n</header>\n";
}

std::string what_html(const ReportData& data) {
  std::string text;
  if (std::ranges::any_of(data.runs, [](const ReportRun& run) { return !run.steps.empty() || !run.probes.empty(); }))
    text += view("loss");
  for (const ReportRun& run : data.runs) {
    if (run.answers.empty()) continue;
    if (data.runs.size() > 1) text += element("h3", run.name) + "\n";
    for (const Answer& answer : run.answers) {
      text +=
          fmt::format("<article class=\"answer\" id=\"answer-{}-{}\">\n", &run - data.runs.data(), escaped(answer.key));
      text += element("h3", answer.question) + "\n" + element("p", answer.sentence) + "\n";
      if (!answer.number.empty()) text += fmt::format("<p class=\"number\">{}</p>\n", escaped(answer.number));
      if (!answer.rules.empty()) {
        text += "<details><summary>By which rule?</summary>\n";
        for (const std::string& rule : answer.rules) text += fmt::format("<p class=\"rule\">{}</p>\n", escaped(rule));
        text += "</details>\n";
      }
      const std::string run_part = data.runs.size() > 1 ? fmt::format("&r={}", &run - data.runs.data()) : "";
      text += fmt::format("<button type=\"button\" data-go=\"{}\">Show</button>\n</article>\n",
                          escaped(answer.go + run_part));
    }
  }
  return text;
}

// Metrics of the table of heads, those that were measured.
constexpr std::string_view shown_metrics[] = {"k_norm", "k_pr",     "k_top_share", "q_norm",    "entropy",
                                              "sink",   "previous", "self",        "constancy", "induction"};

std::string heads_table_html(const ReportRun& run, const Choice& choice) {
  const Tracks& tracks = run.tracks.probe.moments.empty() ? run.tracks.train : run.tracks.probe;
  if (tracks.counts.query_heads == 0 && tracks.counts.key_heads == 0) return "";
  TextTable table{
      "heads",
      fmt::format("Query heads of {}{}, measured on {}; values of keys are those of the key head that it reads", run.name,
                  says_its_training(run, tracks.moments.back()) ? " at " + moment_text(tracks.moments.back()) : "",
                  source_text(tracks.source)),
      {"head", "role"},
      {},
      0};
  std::vector<const Metric*> metrics;
  for (const std::string_view name : shown_metrics)
    if (tracks.has(name) && choice.has_metric(name)) {
      metrics.push_back(&*std::ranges::find(head_metrics(), name, &Metric::name));
      table.head.emplace_back(name);
    }
  std::vector<std::string> attributes;
  const bool of_queries = tracks.counts.query_heads > 0;
  const std::int64_t heads = of_queries ? tracks.counts.query_heads : tracks.counts.key_heads;
  const std::size_t last = tracks.moments.size() - 1;
  for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer)
    for (std::int64_t head = 0; head < heads; ++head) {
      if (of_queries && !choice.has_head(layer, head)) continue;
      std::string role = "–";
      if (run.roles && of_queries) {
        const RolesResult& roles = run.roles->roles;
        const auto place = static_cast<std::size_t>(layer * heads + head);
        if (place < roles.heads.size()) role = roles.definition.name_of(roles.heads[place].label);
      }
      std::vector<std::string> cells = {head_text(of_queries ? HeadKind::query : HeadKind::key, layer, head), role};
      for (const Metric* metric : metrics) {
        const std::int64_t read = metric->kind == HeadKind::key && of_queries ? tracks.key_head_of(head) : head;
        const auto values = tracks.at(metric->name, last, layer, layer);
        cells.push_back(exact_text(
            static_cast<std::size_t>(read) < values.size() ? values[static_cast<std::size_t>(read)] : missing));
      }
      table.rows.push_back(std::move(cells));
      attributes.push_back(fmt::format(" data-head=\"{}{}.{}\"", of_queries ? "q" : "k", layer, head));
    }
  return table_html(table, attributes);
}

const ReportRun* first_tracked(const ReportData& data) {
  const auto found = std::ranges::find_if(data.runs, &ReportRun::has_tracks);
  return found == data.runs.end() ? nullptr : &*found;
}

std::string heads_html(const ReportData& data, const Choice& choice) {
  const ReportRun* run = first_tracked(data);
  return run == nullptr ? "" : view("map") + view("scatter") + heads_table_html(*run, choice);
}

std::string transitions_html(const ReportRun& run, const Choice& choice) {
  if (!run.roles) return "";
  const RolesResult& roles = run.roles->roles;
  auto transitions = roles.timeline.transitions;
  std::erase_if(transitions, [&](const RoleTransition& one) { return !choice.has_head(one.layer, one.head); });
  if (transitions.empty())
    return fmt::format("<p class=\"note\">{}: no head changed its role.</p>\n", escaped(run.name));
  TextTable table{"transitions",
                  fmt::format("Changes of roles in {}, by the definition {}", run.name, roles.definition.id),
                  {"head", "step", "tokens", "from", "to"},
                  {},
                  0};
  std::vector<std::string> attributes;
  for (const RoleTransition& change : transitions) {
    if (table.rows.size() == most_transition_rows) {
      table.left_out = transitions.size() - most_transition_rows;
      break;
    }
    table.rows.push_back({head_text(HeadKind::query, change.layer, change.head), fmt::format("{}", change.moment.step),
                          with_separators(change.moment.tokens), std::string(roles.definition.name_of(change.from)),
                          std::string(roles.definition.name_of(change.to))});
    attributes.push_back(fmt::format(" data-head=\"q{}.{}\"", change.layer, change.head));
  }
  return table_html(table, attributes);
}

std::string time_html(const ReportData& data, const Choice& choice) {
  const ReportRun* run = first_tracked(data);
  if (run == nullptr) return "";
  const bool course =
      std::ranges::any_of(data.runs, [](const ReportRun& one) { return one.tracks.finest().moments.size() > 1; });
  if (!course) return "";
  return view("curves") + view("strips") + (run->roles ? view("role-timeline") : "") + transitions_html(*run, choice);
}

std::string tables_of_kind(const ReportData& data, std::initializer_list<std::string_view> kinds) {
  std::string text;
  for (const ReportRun& run : data.runs)
    for (const TextTable& table : run.tables)
      if (std::ranges::find(kinds, table.kind) != kinds.end())
        text += element("h3", run.name) + "\n" + table_html(table);
  return text;
}

std::string why_html(const ReportData& data) {
  const bool cards = first_tracked(data) != nullptr || std::ranges::any_of(data.runs, [](const ReportRun& run) {
                       return run.has_attention() || !run.plasticity.is_null() || !run.surgery.is_null();
                     });
  return (cards ? view("cards") : "") + tables_of_kind(data, {"plasticity", "surgery"});
}

std::string study_html(const ReportStudy& report) {
  const Verdict& verdict = report.result.verdict;
  std::string text = element("h3", report.name) + "\n" + element("p", verdict.sentence) + "\n";
  text += fmt::format("<p class=\"rule\">τ = {}, compared at {}, {}.</p>\n", escaped(fmt::format("{}", verdict.tau)),
                      escaped(tokens_text(report.result.tokens)), escaped(seeds_text(verdict)));
  TextTable conditions{"conditions",
                       "Mean key PR of each condition, with its 95 % interval over seeds",
                       {"condition", "what it is", "mean PR", "collapse", "validation loss", "runs"},
                       {},
                       0};
  for (std::size_t i = 0; i < verdict.conditions.size(); ++i) {
    const ConditionValues& values = verdict.conditions[i];
    if (values.runs == 0) continue;
    const bool has_loss = i < report.result.val_loss.size() && std::isfinite(report.result.val_loss[i].mean);
    conditions.rows.push_back(
        {values.condition.letter == values.condition.tag
             ? values.condition.tag
             : fmt::format("{} ({})", values.condition.letter, values.condition.tag),
         values.condition.name, mean_text(verdict.mean_pr(i), 2), number_text(finite_mean(values.collapse()).mean),
         has_loss ? mean_text(report.result.val_loss[i], 4) : "–", fmt::format("{}", values.runs)});
  }
  TextTable effects{
      "effects",
      "Differences of mean PR over seeds",
      {"effect", "pair", "difference", "95 % interval", "p (Holm)", "p (equivalence)", "seeds", "outcome"},
      {},
      0};
  for (const Effect& effect : verdict.effects)
    effects.rows.push_back({effect.contrast.name, pair_text(verdict, effect.contrast),
                            difference_text(effect.difference(), verdict.tau),
                            std::isfinite(effect.test.difference.low)
                                ? interval_text(effect.test.difference.low, effect.test.difference.high)
                                : "–",
                            std::isfinite(effect.p_holm) ? p_cell(effect.p_holm) : "–",
                            std::isfinite(effect.test.p_equivalence) ? p_cell(effect.test.p_equivalence) : "–",
                            fmt::format("{}", effect.pairs()), std::string(outcome_name(effect.outcome))});
  text += table_html(conditions) + (effects.rows.empty() ? "" : table_html(effects));
  if (report.result.measures.empty()) return text;
  TextTable measures{
      "measures", "The verdict by other measures of rank", {"measure", "conclusion", "τ", "the same"}, {}, 0};
  for (const MeasureVerdict& measure : report.result.measures)
    measures.rows.push_back({measure.name, std::string(conclusion_name(measure.verdict.conclusion)),
                             number_text(measure.verdict.tau), measure.holds ? (*measure.holds ? "yes" : "no") : "–"});
  return text + table_html(measures);
}

std::string runs_table_html(const ReportData& data) {
  TextTable table{"runs",
                  "Runs in this page",
                  {"run", "command", "status", "seed", "trained", "training loss", "validation loss"},
                  {},
                  0};
  for (const ReportRun& run : data.runs) {
    const auto last = last_moment(run);
    const double loss = training_loss(run), val_loss = last_finite(run.probes, &ProbeLosses::validation);
    table.rows.push_back({run.name, run.command, status_text(run), run.seed ? fmt::format("{}", *run.seed) : "–",
                          last ? moment_text(*last) : "–", std::isfinite(loss) ? fixed_text(loss, 4) : "–",
                          std::isfinite(val_loss) ? fixed_text(val_loss, 4) : "–"});
  }
  return table_html(table);
}

// Runs that cannot be compared head by head: the page says so.
bool shapes_differ(const ReportData& data) {
  std::optional<HeadCounts> first;
  for (const ReportRun& run : data.runs) {
    if (!run.has_tracks()) continue;
    const HeadCounts counts = run.counts();
    if (first && (first->layers != counts.layers || first->query_heads != counts.query_heads ||
                  first->key_heads != counts.key_heads))
      return true;
    if (!first) first = counts;
  }
  return false;
}

std::string compare_html(const ReportData& data) {
  std::string text;
  const bool several = std::ranges::count_if(data.runs, &ReportRun::has_tracks) > 1;
  if (several || !data.studies.empty()) text += view("compare");
  if (several && shapes_differ(data))
    text +=
        "<p class=\"note\">The models have different shapes: heads are not compared one by one, thirds of the layers "
        "and means are.</p>\n";
  for (const ReportStudy& study : data.studies) text += study_html(study);
  text += tables_of_kind(data, {"comparison"});
  return data.runs.size() > 1 ? text + runs_table_html(data) : text;
}

std::string error_cell(const MetricError& error, bool exact) {
  if (exact) return "float32";
  std::vector<std::string> parts;
  if (error.absolute > 0) parts.push_back("± " + fmt::format("{:.2g}", error.absolute));
  if (error.relative > 0) parts.push_back(fmt::format("± {:.2g} %", 100 * error.relative));
  return parts.empty() ? "exact" : fmt::format("{}", fmt::join(parts, "; "));
}

std::string trust_html(const ReportData& data, const PageContent& content) {
  std::string text;
  const ordered_json& reduced = content.index.at("reduced");
  if (const auto moments = reduced.at("moments").get<std::int64_t>(); !content.errors.empty() && moments > 1)
    text += fmt::format(
        "<p>Curves, strips and maps of earlier moments have {} bits; of each source at most {} moments are kept. The "
        "last moment is {}. The largest error of each metric is in the table.</p>\n",
        reduced.at("bits").dump(), moments, content.exact_last ? "exact" : "in float32");
  else if (!content.errors.empty())
    text += "<p>The values of heads are exact.</p>\n";
  if (!content.left_out.empty() || !data.notes.empty()) {
    text += "<ul class=\"reduced\">\n";
    for (const std::string& one : content.left_out) text += "<li>" + escaped("Reduced: " + one) + "</li>\n";
    for (const std::string& note : data.notes) text += "<li>" + escaped("Note: " + note) + "</li>\n";
    text += "</ul>\n";
  }
  if (!content.errors.empty()) {
    TextTable metrics{
        "metrics", "Metrics of this page", {"metric", "meaning", "formula", "unit", "largest error in curves"}, {}, 0};
    for (const Metric& metric : head_metrics())
      if (const auto found = content.errors.find(std::string(metric.name)); found != content.errors.end())
        metrics.rows.push_back({std::string(metric.name), std::string(metric.meaning), formula_of(metric.name),
                                std::string(metric.unit), error_cell(found->second, reduced.at("exact").get<bool>())});
    text += table_html(metrics);
  }
  for (const ordered_json& manifest : data.manifests)
    text += fmt::format("<details><summary>Manifest and configuration: {}</summary><pre>{}</pre></details>\n",
                        escaped(text_at(manifest, "command_line", text_at(manifest, "command"))),
                        escaped(json_text(manifest)));
  return text;
}

std::string policy() {
  const auto source = [](std::string_view bytes) { return "'sha256-" + base64(sha256(bytes)) + "'"; };
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; img-src data: blob:; base-uri 'none'; form-action 'none'; "
      "require-trusted-types-for 'script'",
      source(web_script()), source(web_style()));
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text.front();
    const bool control = length == 1 && (static_cast<unsigned char>(c) < ' ' || c == '\x7f') && c != '\n' && c != '\t';
    if (length == 0 || control)
      safe += replacement;
    else if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else if (c == '\'')
      safe += "&#39;";
    else
      safe += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return safe;
}

std::string script_json(const ordered_json& value) {
  const std::string text = json_line(value);
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view three = std::string_view(text).substr(i, 3);
    if (text[i] == '<') {
      safe += "\\u003c";
    } else if (three == "\xE2\x80\xA8" || three == "\xE2\x80\xA9") {
      safe += three == "\xE2\x80\xA8" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

std::string page_html(const ReportData& data, const PageContent& content, const Choice& choice) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", policy());
  page += element("title", data.title + " – headscope") + "\n<style>" + std::string(web_style()) +
          "</style>\n</head>\n<body>\n";
  page += header_html(data, content.index) + view("controls") + "<main>\n";
  page += section("what", "What happened?", what_html(data));
  page += section("heads", "Which heads?", heads_html(data, choice));
  page += section("time", "When?", time_html(data, choice));
  page += section("why", "Why?", why_html(data));
  page += section("compare", "Compare", compare_html(data));
  page += section("trust", "Can I trust it?", trust_html(data, content));
  page += "</main>\n<script type=\"application/json\" id=\"index\">" + script_json(content.index) + "</script>\n";
  page.reserve(page.size() + content.bytes() + 100 * content.blocks.size() + web_script().size() + 1000);
  for (std::size_t i = 0; i < content.blocks.size(); ++i)
    page += fmt::format("<script type=\"application/x-headscope\" id=\"b{}\">{}</script>\n", i, content.blocks[i]);
  page += "<script>" + std::string(web_script()) + "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace headscope
