// The figures of the study over layers.
#include "figures/axis.h"
#include "figures/figure_parts.h"
#include "study/study_figures.h"

namespace headscope {
namespace {

const Script letters[] = {"A", "B", "C"};

bool any_finite(const Numbers& values) {
  return std::any_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

void append_shown(std::vector<double>& shown, const SeedMeans& means) {
  for (const Numbers* values : {&means.mean, &means.low, &means.high})
    shown.insert(shown.end(), values->begin(), values->end());
}

void add_means(Table& table, const Script& name, const SeedMeans& means) {
  table.add(name.text(), means.mean);
  if (any_finite(means.low)) table.add(name.text() + "_low", means.low).add(name.text() + "_high", means.high);
}

Integers layer_numbers(std::size_t count) {
  Integers layers;
  for (std::size_t i = 0; i < count; ++i) layers.push_back(static_cast<std::int64_t>(i));
  return layers;
}

double mean_of(const Numbers& values) {
  double sum = 0;
  int count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++count;
  }
  return sum / count;
}

// "+6.15", "−3.70" with a true minus sign.
std::string signed_mean(double value) {
  return fmt::format("{}{:.2f}", value < 0 ? "−" : "+", std::fabs(value));
}

// The place of a condition's dot beside the number of its layer: A left, B in the middle, C right.
double shift_of(std::size_t condition) {
  return (static_cast<double>(condition) - 1) * 0.25;
}

// "layers using (column("layer")-0.25)"
Script at_shift(const Script& data, double shift) {
  return format_script("{} using (column(\"layer\"){:+})", data, shift);
}

// With a rim in the colour of the paper: it crosses bars and lines of any colour.
Script interval_clause(const Script& place, const Script& column, const Script& colour) {
  const Script bar = format_script("{0}:\"{1}_low\":(0):(column(\"{1}_high\")-column(\"{1}_low\")) with vectors nohead",
                                   place, column);
  return format_script("{0} lc rgb paper lw 1.8 notitle, \\\n     {0} {1} lw 0.8 notitle", bar, colour);
}

// The line between the dots of two conditions, in each layer: its slope is the effect.
Script link_clause(std::size_t from, std::size_t to) {
  return format_script("{}:\"{}\":({}):(column(\"{}\")-column(\"{}\")) with vectors nohead lc rgb muted lw 0.6 notitle",
                       at_shift("layers", shift_of(from)), letters[from], shift_of(to) - shift_of(from), letters[to],
                       letters[from]);
}

}  // namespace

Figure study_layer_figure(const StudyFigureData& data) {
  const std::string name = "3_per_layer";
  const std::string_view what = "Final key PR by layer";
  std::vector<double> shown;
  std::vector<std::size_t> present;
  std::vector<Script> links, marks;
  std::size_t layers = 0;
  Table table("layers");
  for (std::size_t i = 0; i < data.conditions.size(); ++i) {
    if (!data.conditions[i] || !any_finite(data.conditions[i]->layer_pr.mean)) continue;
    const SeedMeans& means = data.conditions[i]->layer_pr;
    if (present.empty()) {
      layers = means.mean.size();
      table.add("layer", layer_numbers(layers));
    } else {
      links.push_back(link_clause(present.back(), i));
    }
    present.push_back(i);
    add_means(table, letters[i], means);
    append_shown(shown, means);
    const Script place = at_shift("layers", shift_of(i));
    if (any_finite(means.low)) marks.push_back(interval_clause(place, letters[i], format_script("lt {}", i + 1)));
    marks.push_back(format_script("{}:\"{}\" with points pt 7 ps {} lt {} title {}", place, letters[i],
                                  layers <= 12 ? 0.8 : 0.5, i + 1, gnuplot_text(study_condition_names[i])));
  }
  if (present.empty()) return empty_figure(name, what, data.title);
  Figure figure{.name = name, .height = 330, .data = {{"layers", table}}};
  const Axis y = padded(round_axis(shown), 0.02);
  const Margins around{.left = left_margin(y), .right = 16, .top = 50};
  figure.setup = frame_commands(figure, around, what, data.title) + legend_in_rows(figure, around, 1) +
                 axis_labels(figure, "'layer'", "'key PR'") + "set grid noxtics ytics\n" +
                 axis_commands("x", integer_axis(0, static_cast<std::int64_t>(layers) - 1, 16)) + axis_commands("y", y);
  links.insert(links.end(), marks.begin(), marks.end());
  figure.plot = plot_command(links);
  return figure;
}

Figure study_effect_figure(const StudyFigureData& data) {
  const std::string name = "4_causal_decomposition";
  const std::string_view what = "Effects on key PR by layer";
  struct Effect {
    Script column;
    const SeedMeans* means;
    const char* legend;
    int line_type;  // not one of a condition
    double shift;   // of its bar beside the layer's number
  };
  const Effect effects[] = {{"gamma_effect", &data.gamma_effect, "γ (A − B), mean ", 4, -0.2},
                            {"norm_effect", &data.norm_effect, "norm (B − C), mean ", 6, 0.2}};
  std::vector<double> shown = {0};
  std::vector<Script> clauses;
  std::size_t layers = 0;
  Table table("effects");
  for (const Effect& effect : effects) {
    if (!any_finite(effect.means->mean)) continue;
    if (layers == 0) {
      layers = effect.means->mean.size();
      table.add("layer", layer_numbers(layers));
    }
    add_means(table, effect.column, *effect.means);
    append_shown(shown, *effect.means);
    const Script place = at_shift("effects", effect.shift);
    clauses.push_back(format_script("{}:\"{}\":(0.36) with boxes lt {} title {}", place, effect.column,
                                    effect.line_type,
                                    gnuplot_text(effect.legend + signed_mean(mean_of(effect.means->mean)))));
    if (any_finite(effect.means->low)) clauses.push_back(interval_clause(place, effect.column, "lc rgb ink"));
  }
  if (clauses.empty()) return empty_figure(name, what, data.title);
  Figure figure{.name = name, .height = 330, .data = {{"effects", table}}};
  const Axis y = padded(round_axis(shown), 0.02);
  const Margins around{.left = left_margin(y), .right = 16, .top = 50};
  clauses.emplace_back("0 with lines lc rgb ink lw 0.7 notitle");
  figure.setup = frame_commands(figure, around, what, data.title) + legend_in_rows(figure, around, 1) +
                 axis_labels(figure, "'layer'", "'difference in key PR'") + "set grid noxtics ytics\nset minussign\n" +
                 axis_commands("x", integer_axis(0, static_cast<std::int64_t>(layers) - 1, 16)) + axis_commands("y", y);
  figure.plot = plot_command(clauses);
  return figure;
}

}  // namespace headscope
