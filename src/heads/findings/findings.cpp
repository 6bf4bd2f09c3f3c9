#include "heads/findings/findings.h"

#include "heads/findings/answer.h"

namespace headscope {
namespace {

constexpr std::size_t label_width = 14, line_width = 100;

// Characters as a terminal shows them: bytes that continue a UTF-8 sequence take no place.
std::size_t width_of(std::string_view text) {
  std::size_t width = 0;
  for (const char byte : text) width += (static_cast<unsigned char>(byte) & 0xC0) == 0x80 ? 0 : 1;
  return width;
}

// "Label         words words", continued under the words.
std::string paragraph(std::string_view label, std::string_view text) {
  std::string lines = fmt::format("{:<{}}", label, label_width);
  std::size_t column = label_width;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string_view word = text.substr(start, end - start);
    start = end + 1;
    const std::size_t width = width_of(word);
    if (column > label_width && column + 1 + width > line_width) {
      lines += '\n';
      lines.append(label_width, ' ');
      column = label_width;
    }
    if (column > label_width) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += width;
  }
  return lines + "\n";
}

// Calls visit(key in the JSON, label on a terminal, question, finding, rules) for each question, in order.
template <class Visit>
void for_each_question(const Findings& all, Visit visit) {
  visit("norm_split", "Heads split", "Do the heads of a layer split by key norm?", all.norm_split, norm_split_rules);
  visit("norm_entropy", "Sharpness", "Does a high key norm mean sharp attention?", all.norm_entropy,
        norm_entropy_rules);
  visit("rank_collapse", "Rank", "Do keys lose dimensions?", all.rank_collapse, rank_collapse_rules);
  visit("growth", "Volume knob", "Do keys or queries turn the volume up?", all.volume_knob, volume_knob_rules);
  visit("key_evolution", "Key evolution", "How do keys evolve by depth?", all.key_evolution, key_evolution_rules);
}

// What was measured, when.
std::string basis_text(const Findings& findings) {
  const Basis& basis = findings.norm_split.basis;
  std::string text =
      fmt::format("{}, each with {} and {}", counted(static_cast<std::size_t>(findings.counts.layers), "layer"),
                  counted(static_cast<std::size_t>(findings.counts.key_heads), "key head"),
                  counted(static_cast<std::size_t>(findings.counts.query_heads), "query head"));
  if (basis.moments.empty()) return text + ".";
  const std::string_view data = basis.source == "probe" ? "a fixed batch" : "training batches";
  if (!basis.has_course()) return fmt::format("{}; measured on {} at step {}.", text, data, basis.moments.front().step);
  return fmt::format("{}; measured on {} at {} from step {} to {}.", text, data,
                     counted(basis.moments.size(), "moment"), basis.moments.front().step, basis.moments.back().step);
}

}  // namespace

Findings find(const RunTracks& run) {
  DipTester tester;
  Findings findings;
  findings.counts = run.finest().counts;
  findings.norm_split = find_norm_split(run, tester);
  findings.norm_entropy = find_norm_entropy(run, tester);
  findings.rank_collapse = find_rank_collapse(run);
  findings.volume_knob = find_volume_knob(run);
  findings.key_evolution = find_key_evolution(run);
  return findings;
}

nlohmann::ordered_json to_json(const Findings& findings) {
  nlohmann::ordered_json object, rules;
  for_each_question(findings, [&](const std::string& key, auto, auto, const auto& finding, const auto& list) {
    if (key == "growth") object["volume_knob"] = known(findings.volume_knob.knob_name());
    object[key] = to_json(finding);
    for (const Rule& rule : list) rules[key][std::string(rule.name)] = rule.sentence;
  });
  object["rules"] = rules;
  return object;
}

std::string to_markdown(const Findings& findings, std::string_view title) {
  std::string text = fmt::format("# {}\n\n{}\n\n", title, basis_text(findings)), rules = "## Rules\n\n";
  for_each_question(findings, [&](auto, auto, std::string_view question, const auto& finding, const auto& list) {
    text += fmt::format("## {}\n\n{}\n\n{}", question, finding.sentence, tables_of(finding));
    for (const Rule& rule : list) rules += fmt::format("- `{}`: {}\n", rule.name, rule.sentence);
  });
  return text + rules;
}

std::string to_terminal(const Findings& findings) {
  std::string text;
  for_each_question(findings, [&](auto, std::string_view label, auto, const auto& finding, auto) {
    text += paragraph(label, finding.sentence);
  });
  return text;
}

}  // namespace headscope
