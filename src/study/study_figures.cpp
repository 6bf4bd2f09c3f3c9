#include "study/study_figures.h"

#include <algorithm>
#include <cmath>
#include <set>

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

// One seed has no interval.
std::string interval_name(const StudyFigureData& data) {
  std::set<std::size_t> seeds;
  for (const StudyCurves& condition : data.conditions)
    if (condition.seeds > 1) seeds.insert(condition.seeds);
  if (seeds.size() < 2) return fmt::format("95 % interval over {} seeds", seeds.empty() ? 1 : *seeds.begin());
  return fmt::format("95 % interval over {} to {} seeds", *seeds.begin(), *seeds.rbegin());
}

// The interval of a mean in a layer: a bar, which crosses others of any colour.
Mark layer_bar(const std::string& column) {
  return Mark::segment("layers", "layer", column + "_low", column + "_high").wide(0.8).changed(&Mark::rim, true);
}

// Yellow, which is hard to see on white, comes last.
Colour colour_of(const StudyCurves& condition) {
  constexpr std::size_t colours[] = {0, 1, 2, 3, 4, 5, 7, 6};
  return category(colours[condition.colour % std::size(colours)]);
}

// The final value of each condition, beside the panel. Beside a curve that ends early the text would lie over others;
// what no measurement gives is not written out.
std::vector<Label> final_values(const StudyFigureData& data, SeedMeans StudyCurves::*series) {
  std::int64_t last = 0;
  for (const StudyCurves& condition : data.conditions) last = std::max(last, condition.tokens.back());
  std::vector<Label> labels;
  for (const StudyCurves& condition : data.conditions) {
    if (condition.tokens.back() != last) continue;
    const SeedMeans& means = condition.*series;
    if (means.mean.empty() || !(std::fabs(means.mean.back()) < 1e6)) continue;
    std::string text = fmt::format("{} {:.2f}", shorten(condition.letter, 7), means.mean.back());
    const double half = (means.high.back() - means.low.back()) / 2;
    if (std::fabs(half) < 1e6) text += fmt::format(" ± {:.2f}", half);
    labels.push_back({.text = {text}, .place = Label::beside, .y = means.mean.back(), .colour = colour_of(condition)});
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
  constexpr double thickness[] = {1.7, 1.1, 0.6, 0.6};  // of A, B, C and controls
  std::vector<Mark> lines, ends;
  for (const StudyCurves& condition : data.conditions) {
    HEADSCOPE_CHECK(!condition.tokens.empty(), "a condition without a probe");
    // "a", "b", "c", "d": letters of controls are no names of columns.
    const std::string name = condition.colour < 26 ? std::string(1, static_cast<char>('a' + condition.colour))
                                                   : fmt::format("z{}", condition.colour);
    std::string legend = condition.name;
    Table table(name);
    table.add("tokens", condition.tokens);
    for (const auto& [column, member, width, dash, shape] : series) {
      const SeedMeans& means = condition.*member;
      if (finite_count(means.mean) == 0) continue;
      add_means(table, column, means);
      const Mark line = Mark::line(name, "tokens", column)
                            .coloured(colour_of(condition))
                            .wide(width * thickness[std::min(condition.colour, std::size(thickness) - 1)]);
      lines.push_back(line.dashed(dash).changed(&Mark::shape, shape).named(std::exchange(legend, "")));
      const std::size_t last = means.mean.size() - 1;
      if (column == series.back().column)
        ends.push_back(
            Mark::points(name, "tokens", column).of_rows(last, last).coloured(colour_of(condition)).sized(0.6));
      const std::string end(column);
      if (finite_count(means.low) > 1 && dash == Dash::solid)
        panel.marks.push_back(
            Mark::band(name, "tokens", end + "_low", end + "_high").coloured(colour_of(condition)).faded(0.2));
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
      data.conditions, [](const StudyCurves& condition) { return finite_count(condition.loss.mean) > 1; });
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
  const auto found = std::ranges::find(data.conditions, learned_gain_tag, &StudyCurves::tag);
  const StudyCurves none, &learned = found != data.conditions.end() ? *found : none;
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
    figure.notes = {fmt::format("mean over {} seeds; 95 % intervals: at most ± {:.2g}", learned.seeds, widest)};
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

// A dot for each condition beside the number of its layer, in their order; the lines between them are the effects.
Figure layer_figure(const StudyFigureData& data) {
  Table table("layers");
  std::vector<Mark> links, dots;
  std::string before;
  double shift_before = 0;
  const double middle = (static_cast<double>(data.conditions.size()) - 1) / 2;
  const double distance = std::min(0.25, 0.75 / std::max(1.0, 2 * middle));
  for (std::size_t i = 0; i < data.conditions.size(); ++i) {
    const StudyCurves& condition = data.conditions[i];
    const SeedMeans& means = condition.layer_pr;
    if (finite_count(means.mean) == 0) continue;
    // A tag may hold what the name of a column may not.
    const std::string column = is_main(condition.tag) ? key_of(condition.tag) : fmt::format("condition{}", i);
    const double shift = (static_cast<double>(i) - middle) * distance;
    add_means(table, column, means);
    const Mark link = Mark::segment("layers", "layer", before, column).coloured(muted).wide(0.6);
    if (!before.empty() && data.conditions.size() <= n_main_conditions)
      links.push_back(link.shifted(shift_before, shift));
    const Mark dot = Mark::points("layers", "layer", column).named(condition.name);
    if (finite_count(means.low) > 0)
      dots.push_back(layer_bar(column).coloured(colour_of(condition)).shifted(shift, shift));
    dots.push_back(dot.coloured(colour_of(condition)).shifted(shift, shift));
    before = column;
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

// gamma and norm in two colours that A, B and C do not have; then those of the others.
Colour effect_colour(std::size_t effect) {
  constexpr std::size_t colours[] = {3, 5, 7, 0, 1, 2, 4};
  return category(colours[effect % std::size(colours)]);
}

Figure effect_figure(const StudyFigureData& data) {
  Table table("effects");
  std::vector<Mark> marks;
  const std::pair<const char*, const char*> shown[] = {{"gamma", "γ (A − B), mean "}, {"norm", "norm (B − C), mean "}};
  for (std::size_t i = 0; i < data.effects.size(); ++i)
    for (const auto& [name, legend] : shown) {
      const SeedMeans& means = data.effects[i].layers;
      if (data.effects[i].name != name || finite_count(means.mean) == 0) continue;
      const std::string column = std::string(name) + "_effect";
      const double shift = name == shown[0].first ? -0.2 : 0.2;
      add_means(table, column, means);
      const Mark bar = Mark::box("layers", "layer", "", column).spanning(0.36).shifted(shift, shift);
      marks.push_back(
          bar.coloured(effect_colour(name == shown[0].first ? 0 : 1)).named(legend + signed_mean(means.mean)));
      if (finite_count(means.low) > 0) marks.push_back(layer_bar(column).shifted(shift, shift));
    }
  Figure figure = over_layers(data, {"4_causal_decomposition", "Effects on key PR by layer", data.title},
                              std::move(table), "difference in key PR", std::move(marks));
  figure.panels[0].references = {{.y = 0, .dash = Dash::solid}};
  figure.nothing = "no effect without A and B, or B and C";
  return figure;
}

constexpr const char* no_effects = "no effect without two conditions to compare";

// 0, and the ends of what counts as none.
std::vector<Reference> effect_references(double tau) {
  return {{.y = 0, .dash = Dash::solid},
          {.y = tau, .dash = Dash::dotted, .colour = muted},
          {.y = -tau, .dash = Dash::dotted, .colour = muted}};
}

std::string effect_legend(const EffectCurves& effect) {
  return fmt::format("{} ({})", effect.name, effect.pair);
}

Mark tau_mark(double tau) {
  return Mark::line("", "", "").coloured(muted).dashed(Dash::dotted).named(fmt::format("± τ = {:g}", tau));
}

// Controls have a panel of their own, and dashes: colours come again there.
Figure effects_over_time(const StudyFigureData& data) {
  Figure figure{"6_effects_over_time", "Effects on key PR over training", data.title};
  const Panel empty{.x = {.kind = Axis::tokens},
                    .y = {.label = {"difference in mean key PR"}, .padding = 0.02},
                    .references = effect_references(data.tau)};
  std::vector<Panel> panels = {empty, empty};
  Table table("effects");
  table.add("tokens", data.tokens);
  std::vector<Mark> lines[2];
  for (std::size_t i = 0; i < data.effects.size(); ++i) {
    const EffectCurves& effect = data.effects[i];
    if (finite_count(effect.over_time.mean) == 0) continue;
    const std::string column = fmt::format("effect{}", i);
    add_means(table, column, effect.over_time);
    const Mark line = Mark::line("effects", "tokens", column).coloured(effect_colour(i)).named(effect_legend(effect));
    lines[effect.is_control].push_back(line.dashed(effect.is_control ? Dash::dashed : Dash::solid));
    if (finite_count(effect.over_time.low) > 1)
      panels[effect.is_control].marks.push_back(
          Mark::band("effects", "tokens", column + "_low", column + "_high").coloured(effect_colour(i)).faded(0.2));
  }
  if (!panels[0].marks.empty() || !panels[1].marks.empty())
    figure.kinds = {Mark::box("", "", "", "").faded(0.2).named(interval_name(data))};
  for (std::size_t i = 0; i < 2; ++i) {
    if (lines[i].empty()) continue;
    panels[i].marks.insert(panels[i].marks.end(), lines[i].begin(), lines[i].end());
    figure.panels.push_back(std::move(panels[i]));
  }
  if (!figure.panels.empty()) {
    figure.kinds.push_back(tau_mark(data.tau));
    figure.notes = data.notes;
  }
  figure.data = {{"effects", std::move(table)}};
  figure.grid.columns = 1;
  figure.nothing = no_effects;
  return figure;
}

// Dots with their intervals: a layer whose interval crosses 0 shows no sign.
Figure effects_by_layer(const StudyFigureData& data) {
  Figure figure{"7_effects_by_layer", "Effects on key PR by layer", data.title};
  Table table("layers");
  for (std::size_t i = 0; i < data.effects.size(); ++i) {
    const EffectCurves& effect = data.effects[i];
    if (finite_count(effect.layers.mean) == 0) continue;
    const std::string column = fmt::format("effect{}", i);
    add_means(table, column, effect.layers);
    const std::string noise = std::isnan(effect.noise_size) ? "" : fmt::format(" (noise {:.2f})", effect.noise_size);
    Panel panel{.title = fmt::format("{}: {}, mean size {:.2f}{}", effect_legend(effect),
                                     signed_mean(effect.layers.mean), effect.mean_size, noise),
                .x = {.kind = Axis::integers, .label = {"layer"}, .grid = false},
                .y = {.label = {"difference in key PR"}, .padding = 0.02},
                .references = effect_references(data.tau)};
    if (finite_count(effect.layers.low) > 0) panel.marks.push_back(layer_bar(column).coloured(effect_colour(i)));
    panel.marks.push_back(Mark::points("layers", "layer", column).coloured(effect_colour(i)).sized(0.5));
    figure.panels.push_back(std::move(panel));
  }
  if (!figure.panels.empty()) figure.kinds = {tau_mark(data.tau)};
  if (!figure.panels.empty() && std::ranges::any_of(figure.panels[0].marks, &Mark::rim))
    figure.kinds.push_back(Mark::segment("", "", "low", "high").wide(0.8).named(interval_name(data)));
  figure.data = {{"layers", std::move(table)}};
  const bool is_wide = figure.panels.size() > n_main_conditions;
  figure.grid = {.columns = is_wide ? 2u : 1u, .page = is_wide};
  figure.nothing = no_effects;
  return figure;
}

}  // namespace

std::vector<Figure> study_figures(const StudyFigureData& data) {
  std::vector<Figure> figures = {loss_figure(data),
                                 curves_figure(data, {"2_key_pr_causal", "Key participation ratio", data.title},
                                               "key PR, mean over layers", {{"mean_pr", &StudyCurves::mean_pr, 2}}),
                                 layer_figure(data),
                                 effect_figure(data),
                                 gamma_cv_figure(data),
                                 effects_over_time(data),
                                 effects_by_layer(data)};
  Figure spread = curves_figure(data, {"8_score_spread", "Spread of the scores", data.title},
                                "standard deviation of a query's scores", {{"score_std", &StudyCurves::score_std, 2}});
  spread.panels[0].y.kind = Axis::doubling;
  spread.panels[0].y.padding = 0;
  if (!spread.data.empty()) figures.push_back(std::move(spread));
  return figures;
}

}  // namespace headscope
