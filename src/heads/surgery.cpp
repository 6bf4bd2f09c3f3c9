#include "heads/surgery.h"

#include <set>

#include "core/atomic_file.h"
#include "core/bounds.h"
#include "core/json_text.h"
#include "core/lists.h"
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
  constexpr std::size_t most = std::size_t{64} << 20;  // bytes; ours has some ten thousand
  return parse_json(read_file(run / summary_name, most));
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

void validate(const SurgeryOptions& options) {
  if (options.checkpoint.empty())
    fail_input("no checkpoint is named; give RUN/checkpoints/step-000120, or RUN for its newest one");
  bys_of(options);
  shares_of(options);
  bits_of(options);
  if (!options.layers.empty()) parse_index_list(options.layers, "--layers");
  check_ranges(options);
}

std::vector<SurgeryBy> bys_of(const SurgeryOptions& options) {
  std::set<SurgeryBy> chosen;
  if (options.by.empty())
    for (std::size_t i = 0; i < EnumNames<SurgeryBy>::names.size(); ++i) chosen.insert(static_cast<SurgeryBy>(i));
  else
    for (const std::string& part : comma_separated(options.by)) {
      SurgeryBy by{};
      if (!parse_value(part, by))
        fail_input("--by {}: {}", options.by, unknown_name("operation", part, EnumNames<SurgeryBy>::names));
      chosen.insert(by);
    }
  return {chosen.begin(), chosen.end()};
}

std::vector<double> shares_of(const SurgeryOptions& options) {
  std::set<double> shares;
  for (const std::string& part : comma_separated(options.shares)) {
    double share = 0;
    if (!parse_value(part, share) || !(share >= 0 && share <= 1))
      fail_input("--shares {}: '{}' is no share; expected numbers from 0 to 1, comma-separated", options.shares, part);
    shares.insert(share);
  }
  check_size("the number of --shares", static_cast<std::int64_t>(shares.size()), 1, most_measurements);
  return {shares.begin(), shares.end()};
}

std::vector<std::int64_t> bits_of(const SurgeryOptions& options) {
  std::set<std::int64_t, std::greater<>> bits;
  for (const std::string& part : comma_separated(options.bits)) {
    std::int64_t number = 0;
    if (!parse_value(part, number) || number < 2 || number > 16)
      fail_input("--bits {}: '{}' is refused; expected whole numbers from 2 to 16, comma-separated", options.bits,
                 part);
    bits.insert(number);
  }
  return {bits.begin(), bits.end()};
}

std::vector<std::int64_t> layers_of(const SurgeryOptions& options, std::int64_t n_layers) {
  const std::string all = fmt::format("0-{}", n_layers - 1);
  const std::vector<std::int64_t> layers = parse_index_list(options.layers.empty() ? all : options.layers, "--layers");
  if (layers.back() >= n_layers)
    fail_input("--layers {}: the model has no layer {}; expected {}", options.layers, layers.back(), all);
  return layers;
}

ordered_json to_json(const SurgeryLosses& losses) {
  return {{"unmodified_loss", losses.unmodified},
          {"uniform_attention_loss", losses.uniform},
          {"remove", curves_json(losses.rows, "remove", "share_removed", losses.unmodified)},
          {"quantise", curves_json(losses.rows, "quantise", "bits", losses.unmodified)}};
}

ordered_json to_json(const SurgeryOutcome& outcome) {
  ordered_json object = {
      {"title", outcome.title}, {"d_k", outcome.d_k}, {"layers", outcome.layers}, {"order", json_value(outcome.order)}};
  object.update(to_json(outcome.losses));
  return object;
}

void write_outcome(const SurgeryOutcome& outcome, const RunFolder& folder, const std::string& theme, Console& console) {
  folder.write(table_name, to_parquet(outcome.losses.rows));
  folder.write(csv_name, to_csv(outcome.losses.rows));
  folder.write(summary_name, json_text(to_json(outcome)));
  const std::filesystem::path place = folder.place();
  draw_or_warn(
      outcome.out, resume_hint(surgery_command, outcome.out), console,
      [&] { draw_losses(outcome.title, outcome.losses, place, theme); }, [&] { return folder.is_ours(); });
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
