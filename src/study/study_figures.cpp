#include "study/study_figures.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace headscope {
namespace {

constexpr std::array<const char*, 3> letters = {"A", "B", "C"}, blocks = {"a", "b", "c"};

void add_means(Table& table, const std::string& name, const SeedMeans& means) {
  table.add(name, means.mean);
  if (finite_count(means.low) > 0) table.add(name + "_low", means.low).add(name + "_high", means.high);
}

void append(std::vector<double>& shown, const SeedMeans& means) {
  for (const Numbers* values : {&means.mean, &means.low, &means.high})
    shown.insert(shown.end(), values->begin(), values->end());
}

// The interval of a mean: of a band, or of a bar, which crosses others of any colour.
const Mark layer_bar = Mark::segment("layers", "layer", "", "").wide(0.8).changed(&Mark::rim, true);
Mark interval(const Mark& mark, const std::string& column) {
  return mark.changed(&Mark::low, column + "_low").changed(&Mark::high, column + "_high");
}

Axis study_tokens(const StudyFigureData& data) {
  std::vector<double> ends;
  for (const auto& condition : data.conditions) {
    if (!condition) continue;
    HEADSCOPE_CHECK(!condition->tokens.empty(), "a condition without a probe");
    ends.push_back(static_cast<double>(condition->tokens.front()));
    ends.push_back(static_cast<double>(condition->tokens.back()));
  }
  return token_axis(ends);
}

Axis value_axis(const std::vector<double>& shown, std::string label) {
  return labelled(padded(round_axis(shown), 0.02), {std::move(label)});
}

Integers layer_numbers(std::size_t count) {
  Integers layers;
  for (std::size_t i = 0; i < count; ++i) layers.push_back(static_cast<std::int64_t>(i));
  return layers;
}

// The final value of each condition, beside the panel. Beside a curve that ends early the text would lie over others;
// what no measurement gives is not written out.
std::vector<Label> final_values(const StudyFigureData& data, SeedMeans StudyCurves::*series) {
  std::int64_t last = 0;
  for (const auto& condition : data.conditions)
    if (condition) last = std::max(last, condition->tokens.back());
  std::vector<Label> labels;
  for (std::size_t i = 0; i < data.conditions.size(); ++i) {
    if (!data.conditions[i] || data.conditions[i]->tokens.back() != last) continue;
    const SeedMeans& means = (*data.conditions[i]).*series;
    if (means.mean.empty() || !(std::fabs(means.mean.back()) < 1e6)) continue;
    std::string text = fmt::format("{} {:.2f}", letters[i], means.mean.back());
    const double half = (means.high.back() - means.low.back()) / 2;
    if (std::fabs(half) < 1e6) text += fmt::format(" ± {:.2f}", half);
    labels.push_back({.text = {text}, .place = Label::beside, .y = means.mean.back(), .colour = category(i)});
  }
  return labels;
}

// A series of each condition: a curve with its band.
struct Series {
  const char* column;
  SeedMeans StudyCurves::*means;
  double width;
  Dash dash = Dash::solid;
};

// Bands lie below all curves. The first series of a condition names it in the legend.
Figure curves_figure(const StudyFigureData& data, Figure figure, const std::string& y_label,
                     const std::vector<Series>& series) {
  std::vector<double> shown;
  std::vector<Mark> bands, lines;
  for (std::size_t i = 0; i < data.conditions.size(); ++i) {
    if (!data.conditions[i]) continue;
    const std::size_t before = lines.size();
    Table table(blocks[i]);
    table.add("tokens", data.conditions[i]->tokens);
    for (const auto& [column, member, width, dash] : series) {
      const SeedMeans& means = (*data.conditions[i]).*member;
      if (finite_count(means.mean) == 0) continue;
      add_means(table, column, means);
      append(shown, means);
      const std::string name(lines.size() == before ? study_condition_names[i] : "");
      lines.push_back(
          Mark::line(blocks[i], "tokens", column).coloured(category(i)).wide(width).dashed(dash).named(name));
      if (finite_count(means.low) > 1 && dash == Dash::solid)
        bands.push_back(interval(Mark::band(blocks[i], "tokens", "", ""), column).coloured(category(i)).faded(0.2));
    }
    if (lines.size() > before) figure.data.push_back({blocks[i], std::move(table)});
  }
  if (lines.empty()) return empty_figure(figure.name, figure.title, data.title);
  bands.insert(bands.end(), lines.begin(), lines.end());
  figure.panels = {{.x = study_tokens(data), .y = value_axis(shown, y_label), .marks = std::move(bands)}};
  figure.panels[0].labels = final_values(data, series.back().means);
  return figure;
}

Figure loss_figure(const StudyFigureData& data) {
  Figure figure =
      curves_figure(data, {"1_loss", "Loss", data.title}, "cross-entropy (nats)",
                    {{"loss", &StudyCurves::loss, 1.3}, {"val_loss", &StudyCurves::val_loss, 1.3, Dash::dashed}});
  if (figure.panels.empty()) return figure;
  const bool labelled_ends = !figure.panels[0].labels.empty();
  figure.kinds = {Mark::line("", "", "").wide(1.3).named("training"),
                  Mark::line("", "", "")
                      .wide(1.3)
                      .dashed()
                      .named(labelled_ends ? "validation (right: final values)" : "validation")};
  return figure;
}

Figure pr_figure(const StudyFigureData& data) {
  return curves_figure(data, {"2_key_pr_causal", "Key participation ratio", data.title}, "key PR, mean over layers",
                       {{"mean_pr", &StudyCurves::mean_pr, 2}});
}

Figure gamma_figure(const StudyFigureData& data) {
  Figure figure{"5_gamma_cv", "Non-uniformity of learned γ", data.title};
  std::vector<CurvePoint> points;
  std::vector<double> shown = {0, 0.01};  // before training all is 0
  for (std::size_t layer = 0; data.conditions[0] && layer < data.conditions[0]->gamma_cv.size(); ++layer) {
    for (std::size_t probe = 0; probe < data.conditions[0]->tokens.size(); ++probe) {
      const double value = data.conditions[0]->gamma_cv[layer][probe];
      if (!std::isfinite(value)) continue;
      points.push_back({static_cast<std::int64_t>(layer), data.conditions[0]->tokens[probe], value});
      shown.push_back(value);
    }
  }
  if (points.empty()) return empty_figure(figure.name, figure.title, data.title);
  LayerCurves curves = layer_curves(points, "layers", "tokens");
  figure.data = {{"layers", std::move(curves.table)}};
  figure.panels = {{.x = study_tokens(data), .y = value_axis(shown, "γ CV (std / |mean|)"), .marks = curves.marks}};
  figure.colours = ordered_scale(curves.first, curves.last, "layer");
  return figure;
}

// A figure over layers with one table.
Figure over_layers(Figure figure, Table table, const std::vector<double>& shown, const std::string& y_label,
                   std::vector<Mark> marks) {
  if (marks.empty()) return empty_figure(figure.name, figure.title, figure.subject);
  const auto layers = static_cast<std::int64_t>(table.rows());
  figure.data = {{"layers", std::move(table)}};
  figure.panels = {{.x = labelled(integer_axis(0, layers - 1, 16), {"layer"}), .y = value_axis(shown, y_label)}};
  figure.panels[0].x.grid = false;
  figure.panels[0].marks = std::move(marks);
  figure.grid.height = 232;
  return figure;
}

// A dot for each condition beside the number of its layer, A left and C right; the lines between them are the effects.
Figure layer_figure(const StudyFigureData& data) {
  Table table("layers");
  std::vector<double> shown;
  std::vector<Mark> links, dots;
  std::optional<std::size_t> before;
  const auto shift_of = [](std::size_t condition) { return (static_cast<double>(condition) - 1) * 0.25; };
  for (std::size_t i = 0; i < data.conditions.size(); ++i) {
    if (!data.conditions[i] || finite_count(data.conditions[i]->layer_pr.mean) == 0) continue;
    const SeedMeans& means = data.conditions[i]->layer_pr;
    const double shift = shift_of(i);
    if (!before) table.add("layer", layer_numbers(means.mean.size()));
    add_means(table, letters[i], means);
    append(shown, means);
    if (before)
      links.push_back(Mark::segment("layers", "layer", letters[*before], letters[i])
                          .coloured(muted)
                          .wide(0.6)
                          .shifted(shift_of(*before), shift));
    if (finite_count(means.low) > 0)
      dots.push_back(interval(layer_bar, letters[i]).coloured(category(i)).shifted(shift, shift));
    dots.push_back(Mark::points("layers", "layer", letters[i])
                       .coloured(category(i))
                       .sized(means.mean.size() <= 12 ? 0.8 : 0.5)
                       .named(std::string(study_condition_names[i]))
                       .shifted(shift, shift));
    before = i;
  }
  links.insert(links.end(), dots.begin(), dots.end());
  return over_layers({"3_per_layer", "Final key PR by layer", data.title}, std::move(table), shown, "key PR",
                     std::move(links));
}

// "+6.15", "−3.70": the mean over layers.
std::string signed_mean(const Numbers& values) {
  double sum = 0;
  for (const double value : values)
    if (std::isfinite(value)) sum += value;
  const double mean = sum / static_cast<double>(finite_count(values));
  return fmt::format("{}{:.2f}", mean < 0 ? "−" : "+", std::fabs(mean));
}

Figure effect_figure(const StudyFigureData& data) {
  Table table("effects");
  std::vector<double> shown = {0};
  std::vector<Mark> marks;
  const auto add = [&](const char* column, const SeedMeans& means, const char* name, Colour colour, double shift) {
    if (finite_count(means.mean) == 0) return;
    if (marks.empty()) table.add("layer", layer_numbers(means.mean.size()));
    add_means(table, column, means);
    append(shown, means);
    marks.push_back(Mark::box("layers", "layer", "", column)
                        .coloured(std::move(colour))
                        .named(name + signed_mean(means.mean))
                        .spanning(0.36)
                        .shifted(shift, shift));
    if (finite_count(means.low) > 0) marks.push_back(interval(layer_bar, column).shifted(shift, shift));
  };
  // Colours that no condition has.
  add("gamma_effect", data.gamma_effect, "γ (A − B), mean ", category(3), -0.2);
  add("norm_effect", data.norm_effect, "norm (B − C), mean ", category(5), 0.2);
  Figure figure = over_layers({"4_causal_decomposition", "Effects on key PR by layer", data.title}, std::move(table),
                              shown, "difference in key PR", std::move(marks));
  if (!figure.panels.empty()) figure.panels[0].references = {{.y = 0, .dash = Dash::solid}};
  return figure;
}

}  // namespace

std::vector<Figure> study_figures(const StudyFigureData& data) {
  return {loss_figure(data), pr_figure(data), layer_figure(data), effect_figure(data), gamma_figure(data)};
}

std::vector<std::filesystem::path> draw_study_figures(const StudyFigureData& data, const std::filesystem::path& folder,
                                                      const Theme& theme) {
  return draw(study_figures(data), folder, theme).files;
}

}  // namespace headscope
