#include "heads/findings/findings.h"

#include "core/text.h"
#include "heads/findings/answer.h"

namespace headscope {
namespace {

constexpr std::size_t label_width = 14, line_width = 100;

// Calls visit(question, finding, rules) for each, in order.
template <class Visit>
void for_each_question(const Findings& all, Visit visit) {
  visit(split_question, all.norm_split, norm_split_rules);
  visit(sharpness_question, all.norm_entropy, norm_entropy_rules);
  visit(rank_question, all.rank_collapse, rank_collapse_rules);
  visit(volume_question, all.volume_knob, volume_knob_rules);
  visit(keys_question, all.key_evolution, key_evolution_rules);
}

// The same for a reader: what needs a course is left out where there is one moment. Calls visit(label, question,
// finding, rules).
template <class Visit>
void for_each_answer(const Findings& all, Visit visit) {
  const bool course = all.basis().has_course();
  for_each_question(all, [&](const Question& asked, const auto& finding, const auto& rules) {
    if (course)
      visit(asked.label, asked.question, finding, rules);
    else if (!asked.question_of_one.empty())
      visit(asked.label_of_one, asked.question_of_one, finding, rules);
  });
}

// "Heads of tiny over training, measured on the fixed held-out batch (probe)"
std::string title_text(const Findings& findings, std::string_view name) {
  const Basis& basis = findings.basis();
  std::string text = name.empty() ? "Heads" : fmt::format("Heads of {}", name);
  if (basis.moments.empty()) return text;
  if (basis.has_course())
    text += " over training";
  else if (!text.ends_with(fmt::format("step {}", basis.moments.front().step)))
    text += at_step_text(basis.moments.front());
  return fmt::format("{}, measured on {}", text, source_text(basis.source));
}

// "at 16 moments from step 0 to 150 (614,400 tokens)"; empty where nothing is known of the training.
std::string moments_text(const Basis& basis) {
  const Moment last = basis.moments.back();
  if (!basis.has_course()) return last.step == 0 ? "" : "at " + moment_text(last);
  return fmt::format("at {} moments from step {} to {}", basis.moments.size(), basis.moments.front().step,
                     moment_text(last, ""));
}

// What was measured, when.
std::string basis_text(const Findings& findings) {
  const Basis& basis = findings.basis();
  std::string text =
      fmt::format("{}, each with {} and {}", counted(static_cast<std::size_t>(findings.counts.layers), "layer"),
                  counted(static_cast<std::size_t>(findings.counts.key_heads), "key head"),
                  counted(static_cast<std::size_t>(findings.counts.query_heads), "query head"));
  const std::string when = basis.moments.empty() ? "" : moments_text(basis);
  if (!when.empty()) text += "; measured " + when;
  return text + ". L1K0 is key head 0 of layer 1, L1H0 query head 0.";
}

// Where something comes from another source than the rest.
std::string other_source(const Findings& all, const Basis& basis, std::string_view what) {
  if (basis.source == all.basis().source || basis.moments.empty()) return "";
  return fmt::format(" {} from {}, {}.", what, source_text(basis.source), moments_text(basis));
}

std::string source_note(const Findings& all, const auto& finding) {
  return other_source(all, finding.basis, "This is");
}

std::string source_note(const Findings& all, const RankCollapse& found) {
  return other_source(all, found.ranks, "The effective rank is") +
         other_source(all, found.outliers, "One-hot heads and privileged dimensions are");
}

std::string every_layer_text(const Findings& findings) {
  const std::string tables = tables_of(findings.by_layer);
  if (tables.empty()) return "";
  const Basis& basis = findings.basis();
  const std::string when = basis.has_course() ? fmt::format(" at step {} → at step {}", basis.moments.front().step,
                                                            basis.moments.back().step)
                                              : at_step_text(basis.moments.front());
  return fmt::format(
      "## Every layer\n\nMeans over the heads of a layer{}, on {}. docs/measurements.md defines them.\n\n{}", when,
      source_text(basis.source), tables);
}

}  // namespace

Findings find(const RunTracks& run) {
  DipTester tester;
  Findings findings;
  findings.counts = main_source(run).counts;
  findings.norm_split = find_norm_split(run, tester);
  findings.norm_entropy = find_norm_entropy(run, tester);
  findings.rank_collapse = find_rank_collapse(run);
  findings.volume_knob = find_volume_knob(run);
  findings.key_evolution = find_key_evolution(run);
  findings.by_layer = find_by_layer(run);
  return findings;
}

nlohmann::ordered_json to_json(const Findings& findings) {
  nlohmann::ordered_json object, rules;
  for_each_question(findings, [&](const Question& asked, const auto& finding, const auto& list) {
    const std::string key(asked.key);
    if (key == "growth") object["volume_knob"] = known(findings.volume_knob.knob_name());
    object[key] = to_json(finding);
    for (const Rule& rule : list) rules[key][std::string(rule.name)] = rule.sentence;
  });
  object["by_layer"] = to_json(findings.by_layer);
  object["rules"] = rules;
  return object;
}

std::string to_markdown(const Findings& findings, std::string_view name) {
  std::string text = fmt::format("# {}\n\n{}\n\n", title_text(findings, name), basis_text(findings)),
              rules = "## Rules\n\n";
  for_each_answer(findings, [&](auto, std::string_view question, const auto& finding, const auto& list) {
    text += fmt::format("## {}\n\n{}{}\n\n{}", question, finding.sentence, source_note(findings, finding),
                        tables_of(finding));
    for (const Rule& rule : list)
      if (findings.basis().has_course() || !rule.of_a_course)
        rules += fmt::format("- `{}`: {}\n", rule.name, rule.sentence);
  });
  return text + every_layer_text(findings) + rules;
}

std::string to_terminal(const Findings& findings) {
  std::string text;
  const auto paragraph = [&](std::string_view label, const std::string& words) {
    text += fmt::format("{:<{}}{}\n", label, label_width, wrapped(words, line_width, label_width, label_width));
  };
  if (!findings.basis().moments.empty()) {
    const std::string when = moments_text(findings.basis());
    paragraph("Measured",
              fmt::format("on {}{}{}.", source_text(findings.basis().source), when.empty() ? "" : " ", when));
  }
  for_each_answer(findings, [&](std::string_view label, auto, const auto& finding, auto) {
    paragraph(label, finding.sentence + source_note(findings, finding));
  });
  return text;
}

}  // namespace headscope
