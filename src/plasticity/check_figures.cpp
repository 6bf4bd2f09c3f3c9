// The Gaussian model of the queries against a count of them.
#include <algorithm>
#include <cmath>

#include "plasticity/compare.h"
#include "plasticity/plasticity_figures.h"
#include "stats/distributions.h"

namespace headscope {
namespace {

constexpr std::size_t most_gap_names = 5;
constexpr double small_gap = 0.02;  // of a plasticity; with many texts smaller ones are found and do not matter

// A head with its gap as `value`, and the ends of the gap's interval.
struct CheckedHead : HeadValue {
  double empirical = missing, overall = missing;
  bool found = false;  // at a false discovery rate of 5 % over all heads
  [[nodiscard]] bool differs() const { return found && std::abs(value) > small_gap; }
};

// Two-sided, of a normal estimate.
double p_value_of(double estimate, double error) {
  if (!std::isfinite(estimate) || !(error > 0)) return missing;
  return 2 * normal_cdf(-std::abs(estimate) / error);
}

std::vector<CheckedHead> checked_heads(const Table& table) {
  check_heads(table);
  const auto &layer = table.integers("layer"), &q_head = table.integers("q_head");
  const Numbers empirical = table.numbers("ap_empirical"), gap = table.numbers("ap_gap"),
                error = table.numbers("ap_gap_se");
  std::vector<HeadDifference> tests(table.rows());
  for (std::size_t i = 0; i < table.rows(); ++i) tests[i].p_value = p_value_of(gap[i], error[i]);
  control_false_discoveries(tests, 0.05);
  std::vector<CheckedHead> heads;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const Estimate estimate{gap[i], missing, error[i]};
    heads.push_back({{layer[i], q_head[i], gap[i], estimate.low(), estimate.high()},
                     empirical[i],
                     empirical[i] + gap[i],
                     tests[i].significant});
  }
  return heads;
}

// The heads whose gap is large and found, or the others: a table, points and the bars of their intervals.
void add_heads(Figure& figure, std::vector<CheckedHead> heads, bool differing) {
  std::erase_if(heads, [&](const CheckedHead& head) { return head.differs() != differing; });
  if (heads.empty()) return;
  const auto low = [](const CheckedHead& head) { return head.empirical + head.low; };
  const auto high = [](const CheckedHead& head) { return head.empirical + head.high; };
  const std::string data = differing ? "apart" : "agreeing";
  const Colour colour = differing ? category(1) : muted;
  figure.data.push_back(
      {data, table_of(heads, "name", head_name, "layer", &CheckedHead::layer, "q_head", &CheckedHead::q_head,
                      "ap_empirical", &CheckedHead::empirical, "ap_overall", &CheckedHead::overall, "ap_gap",
                      &CheckedHead::value, "bar_low", low, "bar_high", high)});
  auto& marks = figure.panels[0].marks;
  marks.push_back(Mark::segment(data, "ap_empirical", "bar_low", "bar_high").coloured(colour).wide(0.5));
  marks.push_back(
      Mark::points(data, "ap_empirical", "ap_overall")
          .coloured(colour)
          .named(fmt::format("{} ({})", differing ? "larger than 0.02, and found (FDR 5 %)" : "smaller, or not found",
                             heads.size())));
}

// Names for the heads farthest from the diagonal, of those whose gap is large and found.
std::vector<Label> gap_names(std::vector<CheckedHead> heads) {
  std::erase_if(heads, [](const CheckedHead& head) { return !head.differs(); });
  std::ranges::stable_sort(heads, std::greater<>(), [](const CheckedHead& head) { return std::abs(head.value); });
  heads.resize(std::min(heads.size(), most_gap_names));
  std::vector<Label> labels;
  for (const CheckedHead& head : heads)
    labels.push_back({.text = {head_name(head)}, .place = Label::near, .x = head.empirical, .y = head.overall});
  return labels;
}

Figure gap_scatter(Figure figure, std::vector<CheckedHead> heads) {
  std::erase_if(heads, [](const CheckedHead& head) { return !std::isfinite(head.overall); });
  const auto axis = [](const char* label) { return Axis{.kind = Axis::share, .label = {label}, .padding = 0.03}; };
  figure.panels = {{.x = axis("plasticity, queries counted"),
                    .y = axis("plasticity, Gaussian model"),
                    .references = {{.colour = muted, .diagonal = true}},
                    .labels = gap_names(heads)}};
  add_heads(figure, heads, false);
  add_heads(figure, heads, true);
  figure.kinds = {Mark::line("", "", "").coloured(muted).wide(0.8).dashed().named("the model holds")};
  if (std::ranges::any_of(heads, [](const CheckedHead& head) { return std::isfinite(head.low); }))
    figure.kinds.push_back(Mark::segment("", "", "low", "high").wide(0.5).named("95 % interval of the gap"));
  figure.grid.aspect = 1;
  return figure;
}

}  // namespace

std::vector<Figure> check_figures(const Table& checks, const std::string& subject) {
  const std::vector<CheckedHead> heads = checked_heads(checks);
  // Gaps below 0.01 are not worth a colour scale of their own.
  const Axis axis{.kind = Axis::around, .label = {"gap in plasticity", "(model − count)"}, .least = 0.01};
  return {gap_scatter({"gaussian_check", "Gaussian against counted", subject}, heads),
          head_map({"gaussian_gap", "Model against count, by head", subject}, {heads.begin(), heads.end()},
                   {ColourScale::diverging, axis})};
}

}  // namespace headscope
