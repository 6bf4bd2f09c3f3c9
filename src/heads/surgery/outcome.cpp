#include "heads/surgery/outcome.h"

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "core/missing.h"
#include "figures/theme.h"
#include "formats/parquet_table.h"
#include "heads/figures/surgery_figures.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* table_name = "surgery.parquet";
constexpr const char* csv_name = "surgery.csv";
constexpr const char* summary_name = "summary.json";

// [{x_name: x, loss, loss_change, lowest, highest}] for each `by`.
ordered_json curves_json(const Table& rows, const char* method, const char* x_name, double unmodified) {
  ordered_json object = ordered_json::object();
  for (const SurgeryCurve& curve : surgery_curves(rows, method)) {
    ordered_json points = ordered_json::array();
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      ordered_json point = {{x_name, curve.x[i]}, {"loss", curve.loss[i]}, {"loss_change", curve.loss[i] - unmodified}};
      if (curve.repeats > 1) point.update({{"lowest", curve.lowest[i]}, {"highest", curve.highest[i]}});
      points.push_back(std::move(point));
    }
    object[curve.by] = std::move(points);
  }
  return object;
}

ordered_json read_surgery_summary(const fs::path& run) {
  return parse_json(read_file(run / summary_name));
}

// The losses of a run that is complete.
SurgeryLosses losses_in(const fs::path& run, const ordered_json& summary) {
  const auto number = [&](const char* key) {
    const ordered_json value = summary.is_object() ? summary.value(key, ordered_json("")) : ordered_json("");
    if (!value.is_number() && !value.is_null())  // null: not finite
      fail_input("{}: is damaged: it has no number '{}'", (run / summary_name).string(), key);
    return value.is_null() ? missing : value.get<double>();
  };
  return {number("unmodified_loss"), number("uniform_attention_loss"), read_parquet(run / table_name)};
}

std::vector<fs::path> draw_losses(const std::string& title, const SurgeryLosses& losses, const fs::path& out,
                                  const std::string& theme) {
  return draw(surgery_figures(title, losses), out / plots_name, theme_named(theme)).files;
}

}  // namespace

ordered_json to_json(const SurgeryOutcome& outcome) {
  const SurgeryLosses& losses = outcome.losses;
  return {{"title", outcome.title},
          {"d_k", outcome.d_k},
          {"layers", outcome.layers},
          {"order", json_value(outcome.order)},
          {"unmodified_loss", losses.unmodified},
          {"uniform_attention_loss", losses.uniform},
          {"remove", curves_json(losses.rows, "remove", "share_removed", losses.unmodified)},
          {"quantise", curves_json(losses.rows, "quantise", "bits", losses.unmodified)}};
}

void write_outcome(const SurgeryOutcome& outcome, const RunFolder& folder, const std::string& theme, Console& console) {
  folder.write(table_name, to_parquet(outcome.losses.rows));
  folder.write(csv_name, to_csv(outcome.losses.rows));
  folder.write(summary_name, json_text(to_json(outcome)));
  draw_or_warn(outcome.out, console, [&] { draw_losses(outcome.title, outcome.losses, folder.place(), theme); });
}

SurgeryLosses read_losses_of_surgery(const fs::path& run) {
  return losses_in(run, read_surgery_summary(run));
}

std::vector<fs::path> draw_surgery_run(const fs::path& run, const fs::path& out, const std::string& theme) {
  theme_named(theme);  // an unknown name is refused before anything is read
  const ordered_json summary = read_surgery_summary(run);
  if (!summary.is_object() || !summary.value("title", ordered_json()).is_string())
    fail_input("{}: is damaged: it has no text 'title'", (run / summary_name).string());
  return draw_losses(text_at(summary, "title"), losses_in(run, summary), out, theme);
}

}  // namespace headscope
