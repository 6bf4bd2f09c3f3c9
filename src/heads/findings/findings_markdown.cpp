#include <algorithm>

#include "heads/findings/findings.h"
#include "heads/findings/wording.h"

namespace headscope {
namespace {

constexpr std::size_t most_listed = 12;  // heads in a list; the JSON has all

using Row = std::vector<std::string>;

std::string line(const Row& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string table(const Row& head, const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  std::string text = line(head) + line(Row(head.size(), "---"));
  for (const Row& row : rows) text += line(row);
  return text + "\n";
}

std::string section(std::string_view title, const std::string& sentence) {
  return fmt::format("## {}\n\n{}\n\n", title, sentence);
}

std::string step_text(const std::optional<Moment>& moment) {
  return moment ? std::to_string(moment->step) : "–";
}

std::string p_cell(double p) {
  return p < 0.001 ? "< 0.001" : number_text(p);
}

std::string yes_or_no(const std::optional<bool>& value) {
  return !value ? "–" : *value ? "yes" : "no";
}

std::string norm_range(const LayerSplit& layer) {
  std::vector<double> norms = layer.norms;
  std::erase_if(norms, [](double norm) { return !std::isfinite(norm); });
  if (norms.empty()) return "–";
  const auto [low, high] = std::ranges::minmax(norms);
  return interval_text(low, high);
}

// "4 of norm 3.1, 4 of norm 15.2" where two populations were found.
std::string population_cell(const LayerSplit& layer) {
  if (!layer.groups.found()) return "–";
  const auto text = [&](std::span<const std::size_t> heads) {
    std::vector<double> norms;
    for (const std::size_t head : heads) norms.push_back(layer.norms[head]);
    return fmt::format("{} of norm {}", heads.size(), number_text(finite_mean(norms)));
  };
  return text(layer.groups.low) + ", " + text(layer.groups.high);
}

std::string norm_split_section(const NormSplit& split) {
  std::vector<Row> rows;
  for (const LayerSplit& layer : split.layers)
    rows.push_back({std::to_string(layer.layer), number_text(layer.mean), norm_range(layer),
                    percent_text(layer.between_share), step_text(layer.begins), p_cell(layer.groups.test.p_value),
                    population_cell(layer)});
  return section("Do the heads of a layer split by key norm?", split.sentence) +
         table({"layer", "mean key norm", "range of its heads", "between-head share", "split since step",
                "p of the dip test", "populations"},
               rows);
}

std::string cluster_row(std::string_view name, const HeadCluster& cluster) {
  std::vector<std::string> heads;
  for (const HeadPoint& head : cluster.heads) {
    if (heads.size() == most_listed) break;
    heads.push_back(head_text(head.layer, head.head));
  }
  if (cluster.heads.size() > most_listed) heads.push_back(fmt::format("{} more", cluster.heads.size() - most_listed));
  return line({std::string(name), std::to_string(cluster.heads.size()), number_text(cluster.norm),
               number_text(cluster.entropy), joined(heads)});
}

std::string norm_entropy_section(const NormEntropy& found) {
  std::vector<Row> rows;
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
    const RankCorrelation& one = found.layers[layer];
    rows.push_back({std::to_string(layer), std::to_string(one.n), number_text(one.rho),
                    interval_text(one.low, one.high), p_cell(one.p_value)});
  }
  std::string text =
      section("Does a high key norm mean sharp attention?", found.sentence) +
      table({"layer", "query heads", "rank correlation of norm and entropy", "95 % interval", "p"}, rows);
  if (!found.clusters_found()) return text;
  const Row head{"cluster", "query heads", "mean key norm", "mean entropy (nats)", "which"};
  return text + line(head) + line(Row(head.size(), "---")) + cluster_row("low norm", found.low_norm) +
         cluster_row("high norm", found.high_norm) + "\n";
}

std::string rank_collapse_section(const RankCollapse& found) {
  std::vector<Row> ranks, privileged;
  for (const RankCurve& rank : found.curves)
    ranks.push_back({fmt::format("`{}`", rank.metric), std::string(name_of(rank.group)), number_text(rank.curve.start),
                     number_text(rank.curve.lowest), step_text(rank.curve.lowest_at), number_text(rank.curve.end)});
  for (const PrivilegedDimension& one : found.privileged) {
    if (privileged.size() == most_listed) break;
    privileged.push_back({std::to_string(one.layer), std::to_string(one.head),
                          one.dimension ? std::to_string(*one.dimension) : "–", percent_text(one.top_share),
                          percent_text(one.top_energy)});
  }
  std::string text = section("Do keys lose dimensions?", found.sentence) +
                     table({"effective rank", "layers", "start", "lowest", "at step", "end"}, ranks) +
                     table({"layer", "key head", "privileged dimension", "largest in", "of the energy"}, privileged);
  if (found.privileged.size() > most_listed)
    text += fmt::format("And {} more heads.\n\n", found.privileged.size() - most_listed);
  return text;
}

std::string volume_knob_section(const VolumeKnobFinding& found) {
  std::vector<Row> rows;
  for (const Growth* growth : {&found.queries, &found.keys, &found.ratio})
    if (growth->heads > 0)
      rows.push_back({fmt::format("`{}`", growth->metric), number_text(growth->mean),
                      interval_text(growth->low, growth->high), std::to_string(growth->heads),
                      std::to_string(growth->grown_heads), std::to_string(growth->shrunk_heads)});
  return section("Do keys or queries turn the volume up?", found.sentence) +
         table({"quantity", "end / start", "95 % interval", "heads", "grew", "shrank"}, rows);
}

std::string key_evolution_section(const KeyEvolution& found) {
  std::vector<Row> rows;
  for (const GroupEvolution& one : found.groups)
    rows.push_back({std::string(name_of(one.group)), number_text(one.norm.start),
                    fmt::format("{} ({})", number_text(one.norm.lowest), step_text(one.norm.lowest_at)),
                    number_text(one.norm.end), yes_or_no(one.dips), yes_or_no(one.rises),
                    percent_text(one.energy_in_one_dimension), percent_text(one.top_energy),
                    number_text(one.cosine_start), number_text(one.cosine_end)});
  return section("How do keys evolve by depth?", found.sentence) +
         table({"layers", "norm at start", "lowest (step)", "at end", "dips", "rises", "energy in one dimension",
                "in the top dimension", "cosine at start", "at end"},
               rows);
}

std::string rules_section() {
  std::string text = "## Rules\n\n";
  for (const std::span<const Rule> rules :
       {std::span<const Rule>(norm_split_rules), std::span<const Rule>(norm_entropy_rules),
        std::span<const Rule>(rank_collapse_rules), std::span<const Rule>(volume_knob_rules),
        std::span<const Rule>(key_evolution_rules)})
    for (const Rule& rule : rules) text += fmt::format("- `{}`: {}\n", rule.name, rule.sentence);
  return text;
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

std::string to_markdown(const Findings& findings, std::string_view title) {
  return fmt::format("# {}\n\n{}\n\n", title, basis_text(findings)) + norm_split_section(findings.norm_split) +
         norm_entropy_section(findings.norm_entropy) + rank_collapse_section(findings.rank_collapse) +
         volume_knob_section(findings.volume_knob) + key_evolution_section(findings.key_evolution) + rules_section();
}

}  // namespace headscope
