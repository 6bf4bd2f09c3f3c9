#include "heads/figures/surgery_figures.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "figures/script.h"

namespace headscope {
namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> known) {
  return std::ranges::find(known, text) != known.end();
}

// `by` becomes the name of a table and `order` a part of a legend; x must fit on the axis. The table may come from
// anywhere: only what surgery writes is accepted.
void check_row(bool remove, std::string_view by, std::string_view order, double x) {
  if (!(remove ? is_one_of(by, {"gain", "singular", "random"}) : is_one_of(by, {"tensor", "channel"})))
    fail_input("column 'by' holds '{}'; expected {}", shorten(by, 40),
               remove ? "gain, singular or random" : "tensor or channel");
  if (!(remove ? is_one_of(order, {"smallest", "largest", "random"}) : order.empty()))
    fail_input("column 'order' holds '{}'; expected {}", shorten(order, 40),
               remove ? "smallest, largest or random" : "nothing where keys are rounded");
  if (remove && !(x >= 0 && x <= 1)) fail_input("column 'share_removed' holds {}; expected 0 to 1", x);
  if (!remove && !(x >= 1 && x <= 64 && x == std::floor(x)))
    fail_input("column 'bits' holds {}; expected a whole number from 1 to 64", x);
}

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
Reference reference(double loss, std::vector<std::string> name, Dash dash) {
  name.push_back(std::fabs(loss) < 1e6 ? fmt::format("{:.3f}", loss) : fmt::format("{:.3g}", loss));
  return {.y = loss, .dash = dash, .colour = muted, .name = std::move(name)};
}

// Those that were measured.
std::set<double> bits_in(const Table& rows) {
  std::set<double> bits;
  for (const SurgeryCurve& curve : surgery_curves(rows, "quantise")) bits.insert(curve.x.begin(), curve.x.end());
  return bits;
}

// Curves of loss against column `x`; bands of the range over repeats lie below them.
Figure loss_figure(Figure figure, const SurgeryLosses& losses, std::string_view method, const Axis& axis,
                   const std::string& x, double x_scale) {
  Panel panel{.x = axis, .y = {.label = {"validation loss (nats)"}, .padding = 0.02}};
  std::vector<Mark> lines;
  for (const SurgeryCurve& curve : surgery_curves(losses.rows, method)) {
    Numbers places = curve.x;
    for (double& place : places) place *= x_scale;
    Table table(curve.by);
    table.add(x, places).add("loss", curve.loss);
    if (curve.repeats > 1) table.add("lowest", curve.lowest).add("highest", curve.highest);
    if (curve.repeats > 1 && places.size() > 1)
      panel.marks.push_back(Mark::band(curve.by, x, "lowest", "highest").coloured(curve_colour(curve)).faded(0.2));
    lines.push_back(
        Mark::line(curve.by, x, "loss").coloured(curve_colour(curve)).wide(1.6).sized(0.45).named(curve_name(curve)));
    figure.data.push_back({curve.by, std::move(table)});
  }
  panel.marks.insert(panel.marks.end(), lines.begin(), lines.end());
  panel.references = {reference(losses.unmodified, {"unmodified"}, Dash::dashed)};
  figure.panels = {std::move(panel)};
  return figure;
}

}  // namespace

std::vector<SurgeryCurve> surgery_curves(const Table& rows, std::string_view method) {
  const Numbers share = rows.numbers("share_removed"), bits = rows.numbers("bits"), loss = rows.numbers("loss");
  const Texts &methods = rows.texts("method"), &bys = rows.texts("by"), &orders = rows.texts("order");
  const bool remove = method == "remove";
  std::vector<SurgeryCurve> curves;
  std::vector<std::map<double, Numbers>> losses;  // of each curve, by x
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (methods[row] != method) continue;
    const std::string& by = bys[row];
    const double x = remove ? share[row] : bits[row];
    check_row(remove, by, orders[row], x);
    const auto found = std::find_if(curves.begin(), curves.end(), [&](const auto& curve) { return curve.by == by; });
    const auto index = static_cast<std::size_t>(found - curves.begin());
    if (found == curves.end()) {
      curves.push_back({.by = by, .order = orders[row]});
      losses.emplace_back();
    }
    losses[index][x].push_back(loss[row]);
  }
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (const auto& [x, values] : losses[i]) {
      const double lowest = *std::min_element(values.begin(), values.end());
      double above = 0;  // so that the mean of equal values is exactly theirs
      for (const double value : values) above += value - lowest;
      curves[i].x.push_back(x);
      curves[i].loss.push_back(lowest + above / static_cast<double>(values.size()));
      curves[i].lowest.push_back(lowest);
      curves[i].highest.push_back(*std::max_element(values.begin(), values.end()));
      curves[i].repeats = std::max(curves[i].repeats, values.size());
    }
  }
  return curves;
}

std::vector<Figure> surgery_figures(const std::string& title, const SurgeryLosses& losses) {
  const Axis removed{.label = {"dimensions of each head removed (%)"}, .padding = 0.02, .include = {0, 100}};
  Axis bits{.kind = Axis::integers, .label = {"bits of a key component"}};
  for (const double measured : bits_in(losses.rows)) bits.tics.push_back({measured, fmt::format("{}", measured)});
  std::vector<Figure> figures = {
      loss_figure({"surgery_removal", "Key dimensions removed", title}, losses, "remove", removed, "removed", 100),
      loss_figure({"surgery_quantisation", "Rounded keys", title}, losses, "quantise", bits, "bits", 1)};
  figures[0].panels[0].references.push_back(reference(losses.uniform, {"uniform", "attention"}, Dash::dotted));
  return figures;
}

}  // namespace headscope
