#include "heads/figures/surgery_figures.h"

#include "core/error.h"
#include "figures/axis.h"
#include "figures/figure_parts.h"

namespace headscope {
namespace {

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> known) {
  return std::ranges::find(known, text) != known.end();
}

// `by` becomes the name of a data block and `order` a part of a legend; x must fit on the axis. The table may come from
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

// A horizontal line with its name right of the plot.
struct Reference {
  double loss = 0;
  Script name;  // in double quotes
  Script dash;
  double place = 0;  // height of the name, in units of the plot
};

std::string curve_name(const SurgeryCurve& curve) {
  if (curve.by == "gain") return curve.order + " gain first";
  if (curve.by == "singular") return curve.order + " singular value first";
  if (curve.by == "random") return curve.repeats > 1 ? fmt::format("random (range of {})", curve.repeats) : "random";
  return curve.by == "tensor" ? "one scale per layer" : "one scale per channel";
}

// A kind has its colour whoever else is there.
int line_type(const SurgeryCurve& curve) {
  return curve.by == "gain" || curve.by == "tensor" ? 1 : curve.by == "random" ? 3 : 2;
}

Table curve_table(const SurgeryCurve& curve, const Script& x_name, double x_scale) {
  Numbers x = curve.x;
  for (double& value : x) value *= x_scale;
  Table table(curve.by);
  table.add(x_name.text(), x).add("loss", curve.loss);
  if (curve.repeats > 1) table.add("lowest", curve.lowest).add("highest", curve.highest);
  return table;
}

Script band_clause(const SurgeryCurve& curve, const Script& x_name) {
  if (curve.repeats < 2 || curve.x.size() < 2) return {};
  return format_script(
      "{} using \"{}\":\"lowest\":\"highest\" with filledcurves lt {} fs transparent solid 0.2 noborder notitle",
      gnuplot_name(curve.by), x_name, line_type(curve));
}

Script line_clause(const SurgeryCurve& curve, const Script& x_name) {
  return format_script("{} using \"{}\":\"loss\" with linespoints lt {} lw 1.6 pt 7 ps 0.45 title {}",
                       gnuplot_name(curve.by), x_name, line_type(curve), gnuplot_text(curve_name(curve)));
}

std::vector<double> shown_values(const std::vector<SurgeryCurve>& curves, const std::vector<Reference>& references) {
  std::vector<double> shown;
  for (const SurgeryCurve& curve : curves)
    for (const Numbers* values : {&curve.lowest, &curve.highest})
      shown.insert(shown.end(), values->begin(), values->end());
  for (const Reference& reference : references) shown.push_back(reference.loss);
  return shown;
}

// Names of two lines of text that would touch are moved apart.
void place_names(std::vector<Reference>& references, const Axis& y, double height) {
  const double least = 32;
  std::sort(references.begin(), references.end(), [](const auto& a, const auto& b) { return a.loss < b.loss; });
  for (Reference& reference : references)
    reference.place = std::clamp((reference.loss - y.low) / (y.high - y.low), 0.0, 1.0) * height;
  if (references.size() == 2) {
    const double overlap = least - (references[1].place - references[0].place);
    if (overlap > 0) {
      references[0].place -= overlap / 2;
      references[1].place += overlap / 2;
    }
  }
}

// The lines and, right of the plot, what they are.
Script reference_commands(const std::vector<Reference>& references, double height) {
  Script text;
  for (std::size_t i = 0; i < references.size(); ++i) {
    const Reference& reference = references[i];
    text += format_script(
        "set arrow {0} from graph 0,first {1:.10g} to graph 1,first {1:.10g} nohead back lc rgb muted lw 1 {2}\n"
        "set label {3} \"{4}\\n{5:.3f}\" at graph 1,graph {6:.4f} left offset character 0.6,0.45 textcolor rgb ink "
        "font ',12'\n",
        i + 1, reference.loss, reference.dash, i + 6, reference.name, reference.loss, reference.place / height);
  }
  return text;
}

// Tics where there are values, so few that each has its number.
Script bit_axis(const std::vector<SurgeryCurve>& curves) {
  Numbers bits;
  for (const SurgeryCurve& curve : curves) bits.insert(bits.end(), curve.x.begin(), curve.x.end());
  std::sort(bits.begin(), bits.end());
  bits.erase(std::unique(bits.begin(), bits.end()), bits.end());
  std::vector<Script> tics;
  for (const double bit : bits) tics.push_back(format_script("{:g}", bit));
  return format_script("set xrange [{:g}:{:g}]; set xtics ({})\n", bits.front() - 0.3, bits.back() + 0.3,
                       join(tics, ", "));
}

// Those with something to draw.
std::vector<SurgeryCurve> drawn_curves(const Table& rows, std::string_view method) {
  std::vector<SurgeryCurve> curves = surgery_curves(rows, method);
  std::erase_if(curves, [](const SurgeryCurve& curve) {
    return std::ranges::none_of(curve.loss, [](double loss) { return std::isfinite(loss); });
  });
  return curves;
}

struct Parts {
  const char* name;
  std::string_view what;
  Script x_name;  // column of the data
  double x_scale;
  Script x_label;  // a gnuplot string
};

Figure loss_figure(const SurgeryFigureData& data, const std::vector<SurgeryCurve>& curves,
                   std::vector<Reference> references, const Parts& parts, const Script& x_axis) {
  Figure figure{.name = parts.name, .height = 320};
  std::vector<Script> clauses;
  for (const SurgeryCurve& curve : curves) {
    figure.data.push_back({curve.by, curve_table(curve, parts.x_name, parts.x_scale)});
    clauses.push_back(band_clause(curve, parts.x_name));
  }
  for (const SurgeryCurve& curve : curves) clauses.push_back(line_clause(curve, parts.x_name));
  const Axis y = padded(round_axis(shown_values(curves, references)), 0.02);
  const int rows = curves.size() > 2 ? 2 : 1;
  const Margins around{.left = left_margin(y), .right = 88, .top = rows == 2 ? 66.0 : 50.0};
  const double height = figure.height - around.top - around.bottom;
  std::erase_if(references, [](const Reference& reference) { return !std::isfinite(reference.loss); });
  place_names(references, y, height);
  figure.setup = frame_commands(figure, around, parts.what, data.title) + legend_in_rows(figure, around, rows) +
                 axis_labels(figure, parts.x_label, "'validation loss (nats)'") + x_axis + axis_commands("y", y) +
                 reference_commands(references, height);
  figure.plot = plot_command(clauses);
  return figure;
}

Figure removal_figure(const SurgeryFigureData& data) {
  const std::string_view what = "Key dimensions removed";
  const std::vector<SurgeryCurve> curves = drawn_curves(data.rows, "remove");
  if (curves.empty()) return empty_figure("surgery_removal", what, data.title);
  const Axis x{.low = -2, .high = 102, .first_tic = 0, .last_tic = 100, .step = 20};
  return loss_figure(
      data, curves, {{data.unmodified, "unmodified", "dt (6,8)"}, {data.uniform, "uniform\\nattention", "dt (2,5)"}},
      {"surgery_removal", what, "removed", 100, "'dimensions of each head removed (%)'"}, axis_commands("x", x));
}

Figure quantisation_figure(const SurgeryFigureData& data) {
  const std::string_view what = "Rounded keys";
  const std::vector<SurgeryCurve> curves = drawn_curves(data.rows, "quantise");
  if (curves.empty()) return empty_figure("surgery_quantisation", what, data.title);
  return loss_figure(data, curves, {{data.unmodified, "unmodified", "dt (6,8)"}},
                     {"surgery_quantisation", what, "bits", 1, "'bits of a key component'"}, bit_axis(curves));
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

std::vector<Figure> surgery_figures(const SurgeryFigureData& data) {
  return {removal_figure(data), quantisation_figure(data)};
}

std::vector<std::filesystem::path> draw_surgery_figures(const SurgeryFigureData& data,
                                                        const std::filesystem::path& folder, const Theme& theme) {
  return draw(surgery_figures(data), folder, theme).files;
}

}  // namespace headscope
