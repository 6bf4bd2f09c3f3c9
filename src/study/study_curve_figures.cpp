// The figures of the study over tokens.
#include "core/error.h"
#include "figures/axis.h"
#include "figures/figure_parts.h"
#include "figures/layer_curves.h"
#include "figures/token_axis.h"
#include "study/study_figures.h"

namespace headscope {
namespace {

std::size_t finite_count(const Numbers& values) {
  return static_cast<std::size_t>(
      std::count_if(values.begin(), values.end(), [](double value) { return std::isfinite(value); }));
}

bool has_bands(const SeedMeans& means) {
  return finite_count(means.low) > 1;
}

void append(std::vector<double>& shown, const SeedMeans& means) {
  for (const Numbers* values : {&means.mean, &means.low, &means.high})
    shown.insert(shown.end(), values->begin(), values->end());
}

TokenAxis study_tokens(const StudyFigureData& data) {
  std::vector<double> ends;
  for (const auto& condition : data.conditions) {
    if (!condition) continue;
    HEADSCOPE_CHECK(!condition->tokens.empty(), "a condition without a probe");
    ends.push_back(static_cast<double>(condition->tokens.front()));
    ends.push_back(static_cast<double>(condition->tokens.back()));
  }
  return token_axis(ends);
}

void add_means(Table& table, const std::string& name, const SeedMeans& means) {
  if (means.mean.empty()) return;
  table.add(name, means.mean);
  if (has_bands(means)) table.add(name + "_low", means.low).add(name + "_high", means.high);
}

// The name of a condition's data block.
Script block_name(std::size_t condition) {
  const Script names[] = {"a", "b", "c"};
  return names[condition];
}

// A line, or a point where there is no second one to draw it to.
Script curve_clause(const Script& column, const Numbers& values, std::size_t condition, const Script& how) {
  return format_script("{} using \"tokens\":\"{}\" with {} lt {} {} notitle", block_name(condition), column,
                       finite_count(values) == 1 ? Script("points pt 7 ps 0.5") : Script("lines"), condition + 1, how);
}

Script band_clause(const Script& column, std::size_t condition) {
  return format_script(
      "{0} using \"tokens\":\"{1}_low\":\"{1}_high\" with filledcurves lt {2} fs transparent solid 0.2 noborder "
      "notitle",
      block_name(condition), column, condition + 1);
}

Script condition_key(std::size_t condition) {
  return format_script("keyentry with lines lt {} lw 2 title {}", condition + 1,
                       gnuplot_text(study_condition_names[condition]));
}

// Where the final value of a condition is written.
struct EndLabel {
  std::size_t condition;
  double x, value;
  double place;  // height of the text, in units of the plot
  std::string text;
};

// Moves labels apart until none touch, and into the plot: gnuplot leaves out a label whose place is beyond the axis.
void spread(std::vector<EndLabel>& labels, double height, double least) {
  std::sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) { return a.place < b.place; });
  bool moved = true;
  for (int pass = 0; moved && pass < 100; ++pass) {
    moved = false;
    for (std::size_t i = 1; i < labels.size(); ++i) {
      const double overlap = least - (labels[i].place - labels[i - 1].place);
      if (overlap <= 1e-6) continue;
      labels[i].place += overlap / 2;
      labels[i - 1].place -= overlap / 2;
      moved = true;
    }
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto below = static_cast<double>(i), above = static_cast<double>(labels.size() - 1 - i);
    labels[i].place = std::min(labels[i].place, height - (above + 0.5) * least);
    labels[i].place = std::max(labels[i].place, (below + 0.5) * least);
  }
}

std::vector<EndLabel> end_labels(const StudyFigureData& data, SeedMeans StudyCurves::*series, const Axis& y,
                                 double height) {
  std::vector<EndLabel> labels;
  std::int64_t last = 0;
  for (const auto& condition : data.conditions)
    if (condition) last = std::max(last, condition->tokens.back());
  for (std::size_t i = 0; i < data.conditions.size(); ++i) {
    if (!data.conditions[i]) continue;
    const SeedMeans& means = (*data.conditions[i]).*series;
    if (means.mean.empty()) continue;
    const double value = means.mean.back();
    // Beside a curve that ends early the text would lie over others; what no measurement gives is not written out.
    if (data.conditions[i]->tokens.back() != last || !(std::fabs(value) < 1e6)) continue;
    std::string text = fmt::format("{} {:.2f}", "ABC"[i], value);
    const double half = (means.high.back() - means.low.back()) / 2;
    if (std::fabs(half) < 1e6) text += fmt::format(" ± {:.2f}", half);
    const double place = std::clamp((value - y.low) / (y.high - y.low), 0.0, 1.0) * height;
    labels.push_back({i, static_cast<double>(data.conditions[i]->tokens.back()), value, place, std::move(text)});
  }
  spread(labels, height, 15);
  return labels;
}

// Room for the labels right of the plot.
double label_width(const std::vector<EndLabel>& labels) {
  std::size_t longest = 0;
  for (const EndLabel& label : labels) longest = std::max(longest, label.text.size());
  return longest == 0 ? 16 : 20 + 7.6 * static_cast<double>(longest);
}

Table end_table(const std::vector<EndLabel>& labels, const Axis& y, double height) {
  Numbers x, value, text_y;
  Texts text;
  for (const EndLabel& label : labels) {
    x.push_back(label.x);
    value.push_back(label.value);
    text_y.push_back(y.low + label.place / height * (y.high - y.low));
    text.push_back(label.text);
  }
  Table table("ends");
  return table.add("tokens", x).add("value", value).add("text_y", text_y).add("text", text);
}

double plot_height(const Figure& figure, const Margins& around) {
  return figure.height - around.top - around.bottom;
}

// The dot at the end of each curve, its value beside it, and the room for that.
void add_end_labels(Figure& figure, Margins& around, const std::vector<EndLabel>& labels, const Axis& y,
                    std::vector<Script>& clauses) {
  around.right = label_width(labels);
  if (labels.empty()) return;
  figure.data.push_back({"ends", end_table(labels, y, plot_height(figure, around))});
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Script row = format_script("ends every ::{0}::{0} using \"tokens\"", i);
    const std::size_t line_type = labels[i].condition + 1;
    clauses.push_back(format_script("{}:\"value\" with points pt 7 ps 0.6 lt {} notitle", row, line_type));
    clauses.push_back(format_script(
        "{}:\"text_y\":\"text\" with labels left offset character 0.8,0 textcolor lt {} font ',13' notitle", row,
        line_type));
  }
}

// Above the labels: which of several curves they are the values of.
Script label_heading(const std::vector<EndLabel>& labels, double height, const Script& text) {
  if (labels.empty()) return {};
  return format_script(
      "set label 5 {} at graph 1,graph {:.4f} left offset character 0.4,0 textcolor rgb ink font ',12'\n", text,
      (labels.back().place + 15) / height);
}

Table loss_table(const StudyCurves& curves) {
  Table table("loss");
  table.add("tokens", curves.tokens);
  add_means(table, "loss", curves.loss);
  add_means(table, "val_loss", curves.val_loss);
  return table;
}

const Script dashed = "dt (6,8)";

// Training solid with its band, validation dashed.
std::vector<Script> loss_clauses(const StudyCurves& curves, std::size_t condition) {
  std::vector<Script> clauses;
  if (has_bands(curves.loss)) clauses.push_back(band_clause("loss", condition));
  if (finite_count(curves.loss.mean) > 0)
    clauses.push_back(curve_clause("loss", curves.loss.mean, condition, "lw 1.3"));
  if (finite_count(curves.val_loss.mean) > 0)
    clauses.push_back(curve_clause("val_loss", curves.val_loss.mean, condition, "lw 1.3 " + dashed));
  return clauses;
}

}  // namespace

Figure study_loss_figure(const StudyFigureData& data) {
  const std::string name = "1_loss";
  const std::string_view what = "Loss";
  Figure figure{.name = name, .height = 340};
  std::vector<double> shown;
  std::vector<Script> clauses, conditions;
  for (std::size_t i = 0; i < data.conditions.size(); ++i) {
    if (!data.conditions[i]) continue;
    const StudyCurves& curves = *data.conditions[i];
    const auto lines = loss_clauses(curves, i);
    if (lines.empty()) continue;
    figure.data.push_back({block_name(i).text(), loss_table(curves)});
    append(shown, curves.loss);
    append(shown, curves.val_loss);
    clauses.insert(clauses.end(), lines.begin(), lines.end());
    conditions.push_back(condition_key(i));
  }
  if (clauses.empty()) return empty_figure(name, what, data.title);
  const TokenAxis x = study_tokens(data);
  const Axis y = padded(round_axis(shown), 0.02);
  Margins around{.left = left_margin(y), .right = 16, .top = 66};
  const auto labels = end_labels(data, &StudyCurves::val_loss, y, plot_height(figure, around));
  add_end_labels(figure, around, labels, y, clauses);
  around.right = std::max(around.right, labels.empty() ? 16.0 : 82.0);  // the heading
  const Script kinds[] = {"keyentry with lines lc rgb ink lw 1.3 title 'training'",
                          format_script("keyentry with lines lc rgb ink lw 1.3 {} title 'validation'", dashed)};
  for (const Script& key : keys_in_two_rows(conditions, kinds)) clauses.push_back(key);
  figure.setup = frame_commands(figure, around, what, data.title) + legend_in_rows(figure, around, 2) +
                 axis_labels(figure, token_axis_label(x), "'cross-entropy (nats)'") + token_axis_commands(x) +
                 axis_commands("y", y) + label_heading(labels, plot_height(figure, around), "'validation'");
  figure.plot = plot_command(clauses);
  return figure;
}

Figure study_pr_figure(const StudyFigureData& data) {
  const std::string name = "2_key_pr_causal";
  const std::string_view what = "Key participation ratio";
  Figure figure{.name = name, .height = 330};
  std::vector<double> shown;
  std::vector<Script> bands, lines, keys;
  for (std::size_t i = 0; i < data.conditions.size(); ++i) {
    if (!data.conditions[i] || finite_count(data.conditions[i]->mean_pr.mean) == 0) continue;
    const StudyCurves& curves = *data.conditions[i];
    Table table("mean_pr");
    table.add("tokens", curves.tokens);
    add_means(table, "mean_pr", curves.mean_pr);
    append(shown, curves.mean_pr);
    figure.data.push_back({block_name(i).text(), std::move(table)});
    if (has_bands(curves.mean_pr)) bands.push_back(band_clause("mean_pr", i));
    lines.push_back(curve_clause("mean_pr", curves.mean_pr.mean, i, "lw 2"));
    keys.push_back(condition_key(i));
  }
  if (lines.empty()) return empty_figure(name, what, data.title);
  const TokenAxis x = study_tokens(data);
  const Axis y = padded(round_axis(shown), 0.02);
  Margins around{.left = left_margin(y), .right = 16, .top = 50};
  std::vector<Script> clauses = bands;
  clauses.insert(clauses.end(), lines.begin(), lines.end());
  add_end_labels(figure, around, end_labels(data, &StudyCurves::mean_pr, y, plot_height(figure, around)), y, clauses);
  clauses.insert(clauses.end(), keys.begin(), keys.end());
  figure.setup = frame_commands(figure, around, what, data.title) + legend_in_rows(figure, around, 1) +
                 axis_labels(figure, token_axis_label(x), "'key PR, mean over layers'") + token_axis_commands(x) +
                 axis_commands("y", y);
  figure.plot = plot_command(clauses);
  return figure;
}

Figure study_gamma_figure(const StudyFigureData& data, const Theme& theme) {
  const std::string name = "5_gamma_cv";
  const std::string_view what = "Non-uniformity of learned γ";
  std::vector<CurvePoint> points;
  std::vector<double> shown = {0, 0.01};  // before training all is 0
  if (data.conditions[0]) {
    const StudyCurves& curves = *data.conditions[0];
    for (std::size_t layer = 0; layer < curves.gamma_cv.size(); ++layer) {
      for (std::size_t probe = 0; probe < curves.tokens.size(); ++probe) {
        const double value = curves.gamma_cv[layer][probe];
        if (!std::isfinite(value)) continue;
        points.push_back({static_cast<std::int64_t>(layer), curves.tokens[probe], value});
        shown.push_back(value);
      }
    }
  }
  if (points.empty()) return empty_figure(name, what, data.title);
  const LayerCurves curves = layer_curves(points, "tokens");
  Figure figure{.name = name, .height = 300, .data = {{"layers", curves.table}}};
  const TokenAxis x = study_tokens(data);
  const Axis y = padded(round_axis(shown), 0.02);
  const Margins around{.left = left_margin(y), .right = layer_bar_width(curves.first, curves.last)};
  figure.setup = frame_commands(figure, around, what, data.title) + "unset key\n" +
                 axis_labels(figure, token_axis_label(x), "'γ CV (std / |mean|)'") + token_axis_commands(x) +
                 axis_commands("y", y) + layer_colours(figure, around, curves.first, curves.last, theme);
  figure.plot = curves.commands + plot_command({curves.clause});
  return figure;
}

}  // namespace headscope
