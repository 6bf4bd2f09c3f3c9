#include "study/study_figures.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/error.h"

namespace headscope {
namespace {

std::size_t finite_count(const Numbers& values) {
  return static_cast<std::size_t>(std::ranges::count_if(values, [](double value) { return std::isfinite(value); }));
}

// A table without columns is one of layers.
void add_means(Table& table, const std::string& name, const SeedMeans& means) {
  Integers layer;
  for (std::size_t i = 0; i < means.mean.size(); ++i) layer.push_back(static_cast<std::int64_t>(i));
  if (table.columns().empty()) table.add("layer", std::move(layer));
  table.add(name, means.mean);
  if (finite_count(means.low) > 0) table.add(name + "_low", means.low).add(name + "_high", means.high);
}

std::string interval_name(const StudyFigureData& data) {
  return fmt::format("95 % interval over {} seeds", data.seeds);
}

// The interval of a mean in a layer: a bar, which crosses others of any colour.
Mark layer_bar(const std::string& column) {
  return Mark::segment("layers", "layer", column + "_low", column + "_high").wide(0.8).changed(&Mark::rim, true);
}

// The final value of each condition, beside the panel. Beside a curve that ends early the text would lie over others;
// what no measurement gives is not written out.
std::vector<Label> final_values(const StudyFigureData& data, SeedMeans StudyCurves::*series) {
  std::int64_t last = 0;
  for (const auto& condition : data.conditions)
    if (condition) last = std::max(last, condition->tokens.back());
  std::vector<Label> labels;
  for (std::size_t i = 0; i < n_conditions; ++i) {
    if (!data.conditions[i] || data.conditions[i]->tokens.back() != last) continue;
    const SeedMeans& means = (*data.conditions[i]).*series;
    if (means.mean.empty() || !(std::fabs(means.mean.back()) < 1e6)) continue;
    std::string text = fmt::format("{} {:.2f}", study_conditions[i].letter, means.mean.back());
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
  PointShape shape = PointShape::circle;
};

// Bands lie below all curves; a dot ends each curve whose final value stands beside it. The first series of a condition
// names it in the legend. Later conditions are thinner: one that lies over another leaves its rims.
Figure curves_figure(const StudyFigureData& data, Figure figure, const std::string& y_label,
                     const std::vector<Series>& series) {
  Panel panel{.x = {.kind = Axis::tokens}, .y = {.label = {y_label}, .padding = 0.02}};
  constexpr PerCondition<double> thickness = {1.7, 1.1, 0.6};
  std::vector<Mark> lines, ends;
  for (std::size_t i = 0; i < n_conditions; ++i) {
    if (!data.conditions[i]) continue;
    HEADSCOPE_CHECK(!data.conditions[i]->tokens.empty(), "a condition without a probe");
    const std::string name(1, static_cast<char>(std::tolower(study_conditions[i].letter[0])));
    std::string legend(study_conditions[i].name);
    Table table(name);
    table.add("tokens", data.conditions[i]->tokens);
    for (const auto& [column, member, width, dash, shape] : series) {
      const SeedMeans& means = (*data.conditions[i]).*member;
      if (finite_count(means.mean) == 0) continue;
      add_means(table, column, means);
      const Mark line = Mark::line(name, "tokens", column).coloured(category(i)).wide(width * thickness[i]);
      lines.push_back(line.dashed(dash).changed(&Mark::shape, shape).named(std::exchange(legend, "")));
      const std::size_t last = means.mean.size() - 1;
      if (column == series.back().column)
        ends.push_back(Mark::points(name, "tokens", column).of_rows(last, last).coloured(category(i)).sized(0.6));
      const std::string end(column);
      if (finite_count(means.low) > 1 && dash == Dash::solid)
        panel.marks.push_back(Mark::band(name, "tokens", end + "_low", end + "_high").coloured(category(i)).faded(0.2));
    }
    if (legend.empty()) figure.data.push_back({name, std::move(table)});
  }
  if (!panel.marks.empty()) figure.kinds = {Mark::box("", "", "", "").faded(0.2).named(interval_name(data))};
  panel.marks.insert(panel.marks.end(), lines.begin(), lines.end());
  panel.marks.insert(panel.marks.end(), ends.begin(), ends.end());
  panel.labels = final_values(data, series.back().means);
  figure.panels = {std::move(panel)};
  return figure;
}

// A single probe has dots instead of curves.
Figure loss_figure(const StudyFigureData& data) {
  Figure figure = curves_figure(data, {"1_loss", "Loss", data.title}, "cross-entropy (nats)",
                                {{"loss", &StudyCurves::loss, 1.3, Dash::solid, PointShape::triangle},
                                 {"val_loss", &StudyCurves::val_loss, 1.3, Dash::dashed}});
  const bool curves = std::ranges::any_of(
      data.conditions, [](const auto& condition) { return condition && finite_count(condition->loss.mean) > 1; });
  const Mark line = curves ? Mark::line("", "", "").wide(1.3) : Mark::points("", "", "");
  const char* validation = figure.panels[0].labels.empty() ? "validation" : "validation (right: final)";
  figure.kinds.insert(figure.kinds.begin(),
                      {line.changed(&Mark::shape, PointShape::triangle).named("training, mean since last probe"),
                       line.dashed().named(validation)});
  return figure;
}

Figure gamma_cv_figure(const StudyFigureData& data) {
  Figure figure{"5_gamma_cv", "Non-uniformity of learned γ", data.title};
  Panel panel{.x = {.kind = Axis::tokens},
              .y = {.label = {"γ CV (std / |mean|)"}, .padding = 0.02, .include = {0, 0.01}}};  // before training: 0
  const StudyCurves none, &learned = data.conditions[0] ? *data.conditions[0] : none;
  Table table("layers");
  table.add("tokens", learned.tokens);
  double widest = 0;
  for (std::size_t layer = 0; layer < learned.gamma_cv.size(); ++layer) {
    const SeedMeans& means = learned.gamma_cv[layer];
    const std::string name = fmt::format("L{}", layer);
    add_means(table, name, means);
    for (std::size_t i = 0; i < means.mean.size(); ++i)
      if (const double half = (means.high[i] - means.low[i]) / 2; half < 1e6) widest = std::max(widest, half);
    panel.marks.push_back(
        Mark::line("layers", "tokens", name).coloured(by_value(static_cast<std::int64_t>(layer))).wide(0.9));
  }
  // Bands of many layers would hide each other.
  if (widest > 0)
    figure.notes = {fmt::format("mean over {} seeds; 95 % intervals: at most ± {:.2g}", data.seeds, widest)};
  figure.data = {{"layers", std::move(table)}};
  figure.panels = {std::move(panel)};
  figure.colours = {ColourScale::ordered, {.kind = Axis::integers, .label = {"layer"}}};
  return figure;
}

Figure over_layers(const StudyFigureData& data, Figure figure, Table table, const std::string& y_label,
                   std::vector<Mark> marks) {
  if (std::ranges::any_of(marks, &Mark::rim))
    figure.kinds.push_back(Mark::segment("", "", "low", "high").wide(0.8).named(interval_name(data)));
  figure.data = {{"layers", std::move(table)}};
  figure.panels = {{.x = {.kind = Axis::integers, .label = {"layer"}, .grid = false},
                    .y = {.label = {y_label}, .padding = 0.02},
                    .marks = std::move(marks)}};
  figure.grid.height = 232;
  return figure;
}

// A dot for each condition beside the number of its layer, A left and C right; the lines between them are the effects.
Figure layer_figure(const StudyFigureData& data) {
  Table table("layers");
  std::vector<Mark> links, dots;
  std::string before;
  double shift_before = 0;
  for (std::size_t i = 0; i < n_conditions; ++i) {
    if (!data.conditions[i] || finite_count(data.conditions[i]->layer_pr.mean) == 0) continue;
    const SeedMeans& means = data.conditions[i]->layer_pr;
    const std::string letter(study_conditions[i].letter);
    const double shift = (static_cast<double>(i) - 1) * 0.25;
    add_means(table, letter, means);
    const Mark link = Mark::segment("layers", "layer", before, letter).coloured(muted).wide(0.6);
    if (!before.empty()) links.push_back(link.shifted(shift_before, shift));
    const Mark dot = Mark::points("layers", "layer", letter).named(std::string(study_conditions[i].name));
    if (finite_count(means.low) > 0) dots.push_back(layer_bar(letter).coloured(category(i)).shifted(shift, shift));
    dots.push_back(dot.coloured(category(i)).shifted(shift, shift));
    before = letter;
    shift_before = shift;
  }
  Figure figure{"3_per_layer", "Final key PR by layer", data.title};
  if (!links.empty()) figure.kinds = {Mark::line("", "", "").coloured(muted).wide(0.6).named("same layer")};
  links.insert(links.end(), dots.begin(), dots.end());
  return over_layers(data, std::move(figure), std::move(table), "key PR", std::move(links));
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
  std::vector<Mark> marks;
  const auto add = [&](const char* column, const SeedMeans& means, const char* name, Colour colour, double shift) {
    if (finite_count(means.mean) == 0) return;
    add_means(table, column, means);
    const Mark bar = Mark::box("layers", "layer", "", column).coloured(std::move(colour)).spanning(0.36);
    marks.push_back(bar.named(name + signed_mean(means.mean)).shifted(shift, shift));
    if (finite_count(means.low) > 0) marks.push_back(layer_bar(column).shifted(shift, shift));
  };
  // Colours that no condition has.
  add("gamma_effect", data.gamma_effect, "γ (A − B), mean ", category(3), -0.2);
  add("norm_effect", data.norm_effect, "norm (B − C), mean ", category(5), 0.2);
  Figure figure = over_layers(data, {"4_causal_decomposition", "Effects on key PR by layer", data.title},
                              std::move(table), "difference in key PR", std::move(marks));
  figure.panels[0].references = {{.y = 0, .dash = Dash::solid}};
  figure.nothing = "no effect without A and B, or B and C";
  return figure;
}

}  // namespace

std::vector<Figure> study_figures(const StudyFigureData& data) {
  return {loss_figure(data),
          curves_figure(data, {"2_key_pr_causal", "Key participation ratio", data.title}, "key PR, mean over layers",
                        {{"mean_pr", &StudyCurves::mean_pr, 2}}),
          layer_figure(data), effect_figure(data), gamma_cv_figure(data)};
}

}  // namespace headscope
