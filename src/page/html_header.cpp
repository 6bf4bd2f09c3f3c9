// The header: name, verdict, facts.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/console.h"
#include "core/json_text.h"
#include "core/text.h"
#include "heads/findings/answer.h"
#include "heads/inspection.h"
#include "page/html_sections.h"
#include "page/html_text.h"
#include "run/manifest.h"
#include "study/verdict.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

struct Fact {
  std::string name, text;
};

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

std::string roles_sentence(const ReportRun& run) {
  if (!run.roles) return "";
  const RolesResult& roles = run.roles->roles;
  const std::vector<std::int64_t> counts = roles.role_counts();
  std::vector<std::string> parts;
  std::int64_t with_role = 0;
  for (std::size_t label = 0; label < roles.definition.roles.size(); ++label) {
    if (counts[label] == 0) continue;
    with_role += counts[label];
    parts.push_back(fmt::format("{} {}", counts[label], role_text(roles.definition.name_of(label))));
  }
  const std::size_t all = roles.heads.size();
  if (with_role == 0)
    return fmt::format("None of {} query heads has a role by the definition {}.", all, roles.definition.id);
  return fmt::format("{} of {} query heads have a role: {}.", with_role, all, joined(parts));
}

// What happened, in one or two sentences.
std::string verdict_text(const ReportData& data) {
  if (!data.studies.empty()) return study_summary(data.studies.front().result);
  const ReportRun& run = data.runs.front();
  std::string text;
  const std::optional<Moment> last = last_moment(run);
  const double loss = training_loss(run), val_loss = validation_loss(run);
  if (last && (std::isfinite(loss) || std::isfinite(val_loss))) {
    const std::string when = says_its_training(run, *last) ? fmt::format("At {} the", moment_text(*last)) : "The";
    if (std::isfinite(loss)) text = fmt::format("{} training loss is {}", when, fixed_text(loss, 3));
    if (std::isfinite(val_loss))
      text += std::isfinite(loss) ? fmt::format(" and the validation loss {}", fixed_text(val_loss, 3))
                                  : fmt::format("{} validation loss is {}", when, fixed_text(val_loss, 3));
    text += ". ";
  }
  if (data.runs.size() > 1) text = fmt::format("{}: {}", label_of(data, run), text);
  if (!run.comparison.is_null() || !run.surgery.is_null() || !run.plasticity.is_null())
    for (const TextTable& table : run.tables) text += table.caption + ". ";
  return text + roles_sentence(run);
}

// What all runs have in common; empty where they differ.
template <typename Text>
std::string common_text(const ReportData& data, Text text) {
  std::set<std::string> texts;
  for (const ReportRun& run : data.runs) texts.insert(text(run));
  return texts.size() == 1 ? *texts.begin() : "";
}

// "attention of 64 heads on one text, 20 examples of a head"
std::string texts_text(const ReportRun& run) {
  std::vector<std::string> parts;
  std::set<std::pair<std::int64_t, std::int64_t>> shown, with_examples;
  for (const ShownAttention& one : run.attention.heads) shown.insert({one.layer, one.head});
  for (const ShownExample& one : run.examples) with_examples.insert({one.layer, one.head});
  if (!shown.empty())
    parts.push_back(fmt::format("attention of {} on {}", counted(shown.size(), "head"),
                                counted(run.attention.texts.size(), "text")));
  if (!with_examples.empty()) parts.push_back(fmt::format("examples of {}", counted(with_examples.size(), "head")));
  return parts.empty() ? "" : joined(parts) + ": pin a head to see them";
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
    add("command", common_text(data, [](const ReportRun& one) { return one.command; }));
    add("model", common_text(data, model_text));
    add("trained", common_text(data, [](const ReportRun& one) {
          const std::optional<Moment> last = last_moment(one);
          return last && says_its_training(one, *last) ? moment_text(*last) : "";
        }));
    const double val_loss = validation_loss(run);
    if (data.runs.size() == 1 && std::isfinite(training_loss(run)))
      add("training loss", fixed_text(training_loss(run), 4));
    if (data.runs.size() == 1 && std::isfinite(val_loss)) add("validation loss", fixed_text(val_loss, 4));
  }
  if (!data.studies.empty()) {
    add("seeds", seeds_text(data.studies.front().result.verdict));
    add("conclusion", conclusion_text(data.studies.front().result.verdict));
  } else {
    add("seed", common_text(data, [](const ReportRun& one) { return one.seed ? fmt::format("{}", *one.seed) : ""; }));
  }
  if (!data.runs.empty()) {
    add("on texts", common_text(data, texts_text));
    add("device", common_text(data, [](const ReportRun& one) { return one.device; }));
    add("started", data.runs.front().started);
    std::string ended;  // the times sort as texts; none while a run goes on
    for (const ReportRun& run : data.runs) ended = std::max(ended, run.ended.value_or("\x7f"));
    if (ended != "\x7f") add("ended", ended);
  }
  add("version", "headscope " + text_at(index, "version"));
  add("page written", text_at(index, "created"));
  return facts;
}

}  // namespace

std::string status_text(const ReportRun& run) {
  if (!run.progress || run.status != status_name(RunStatus::running)) return run.status;
  const TrainingProgress& now = *run.progress;
  std::string text = fmt::format("{}, step {} of {} ({})", run.status, now.moment.step, now.steps, now.phase);
  if (std::isfinite(now.seconds_left)) text += fmt::format(", {} left", format_duration(now.seconds_left));
  return text;
}

double training_loss(const ReportRun& run) {
  return run.steps.empty() ? last_finite(run.probes, &ProbeLosses::train) : run.steps.back().last.loss;
}

double validation_loss(const ReportRun& run) {
  return last_finite(run.probes, &ProbeLosses::validation);
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

bool says_its_training(const ReportRun& run, const Moment& moment) {
  return moment.step > 0 || moment.tokens > 0 || run.command != inspect_command;
}

std::string header_html(const ReportData& data, const ordered_json& index) {
  std::string text =
      "<header>\n<button id=\"theme\" type=\"button\">Theme</button>\n" + element("h1", data.title) + "\n";
  if (!data.studies.empty()) text += legend_html(data.studies.front().result.verdict);
  if (const std::string verdict = verdict_text(data); !verdict.empty())
    text += fmt::format("<p class=\"verdict\">{}</p>\n", escaped(verdict));
  text += "<dl class=\"facts\">\n";
  for (const Fact& fact : facts_of(data, index))
    text += "<div>" + element("dt", fact.name) + element("dd", fact.text) + "</div>\n";
  return text + "</dl>\n</header>\n";
}

}  // namespace headscope
