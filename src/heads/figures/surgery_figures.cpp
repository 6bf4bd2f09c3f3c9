#include "heads/figures/surgery_figures.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace headscope {
namespace {

std::string curve_name(const SurgeryCurve& curve) {
  if (curve.by == "gain") return curve.order + " gain first";
  if (curve.by == "singular") return curve.order + " singular value first";
  if (curve.by == "random") return curve.repeats > 1 ? fmt::format("random (range of {})", curve.repeats) : "random";
  return curve.by == "tensor" ? "one scale per layer" : "one scale per channel";
}

// A kind has its colour whoever else is there.
Colour curve_colour(const SurgeryCurve& curve) {
  return category(curve.by == "gain" || curve.by == "tensor" ? 0 : curve.by == "random" ? 2 : 1);
}

// A loss to compare with: a line across the panel, named beside it.
void add_reference(Panel& panel, double loss, std::vector<std::string> name, Dash dash) {
  if (!std::isfinite(loss)) return;
  name.push_back(std::fabs(loss) < 1e6 ? fmt::format("{:.3f}", loss) : fmt::format("{:.3g}", loss));
  panel.references.push_back({.y = loss, .dash = dash, .colour = muted});
  panel.labels.push_back({.text = std::move(name), .place = Label::beside, .y = loss});
}

// Curves of loss against column `x`; bands of the range over repeats lie below them.
Figure loss_figure(const SurgeryFigureData& data, Figure figure, const std::vector<SurgeryCurve>& curves,
                   const std::string& x, double x_scale) {
  Panel panel;
  std::vector<Mark> lines;
  std::vector<double> shown = {data.unmodified};
  for (const SurgeryCurve& curve : curves) {
    if (finite_count(curve.loss) == 0) continue;
    Numbers places = curve.x;
    for (double& place : places) place *= x_scale;
    Table table(curve.by);
    table.add(x, places).add("loss", curve.loss);
    if (curve.repeats > 1) table.add("lowest", curve.lowest).add("highest", curve.highest);
    if (curve.repeats > 1 && places.size() > 1)
      panel.marks.push_back(Mark::band(curve.by, x, "lowest", "highest").coloured(curve_colour(curve)).faded(0.2));
    lines.push_back(
        Mark::line(curve.by, x, "loss").coloured(curve_colour(curve)).wide(1.6).sized(0.45).named(curve_name(curve)));
    for (const Numbers* values : {&curve.lowest, &curve.highest})
      shown.insert(shown.end(), values->begin(), values->end());
    figure.data.push_back({curve.by, std::move(table)});
  }
  if (lines.empty()) return empty_figure(figure.name, figure.title, data.title);
  panel.marks.insert(panel.marks.end(), lines.begin(), lines.end());
  add_reference(panel, data.unmodified, {"unmodified"}, Dash::dashed);
  if (x == "removed") {
    shown.push_back(data.uniform);
    add_reference(panel, data.uniform, {"uniform", "attention"}, Dash::dotted);
  }
  panel.y = labelled(padded(round_axis(shown), 0.02), {"validation loss (nats)"});
  figure.panels = {std::move(panel)};
  return figure;
}

Figure removal_figure(const SurgeryFigureData& data) {
  Figure figure = loss_figure(data, {"surgery_removal", "Key dimensions removed", data.title},
                              surgery_curves(data.rows, "remove"), "removed", 100);
  if (figure.panels.empty()) return figure;
  figure.panels[0].x = {.low = -2, .high = 102, .label = {"dimensions of each head removed (%)"}};
  for (int share = 0; share <= 100; share += 20)
    figure.panels[0].x.tics.push_back({static_cast<double>(share), fmt::format("{}", share)});
  return figure;
}

Figure quantisation_figure(const SurgeryFigureData& data) {
  const std::vector<SurgeryCurve> curves = surgery_curves(data.rows, "quantise");
  Figure figure = loss_figure(data, {"surgery_quantisation", "Rounded keys", data.title}, curves, "bits", 1);
  if (figure.panels.empty()) return figure;
  std::set<double> bits;  // tics where there are values: few, so that each has its number
  for (const SurgeryCurve& curve : curves) bits.insert(curve.x.begin(), curve.x.end());
  figure.panels[0].x = {.low = *bits.begin() - 0.3, .high = *bits.rbegin() + 0.3, .label = {"bits of a key component"}};
  for (const double bit : bits) figure.panels[0].x.tics.push_back({bit, tic_text(bit)});
  return figure;
}

}  // namespace

std::vector<Figure> surgery_figures(const SurgeryFigureData& data) {
  return {removal_figure(data), quantisation_figure(data)};
}

std::vector<std::filesystem::path> draw_surgery_figures(const SurgeryFigureData& data,
                                                        const std::filesystem::path& folder, const Theme& theme) {
  return draw(surgery_figures(data), folder, theme).files;
}

}  // namespace headscope
