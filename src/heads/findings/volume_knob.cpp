#include "heads/findings/volume_knob.h"

#include <cmath>

#include "stats/welch.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr double least_growth = 1.1;

Growth growth_of(const Tracks& tracks, std::string_view metric) {
  Growth growth{metric};
  const std::span<const double> start = tracks.at(metric, 0), end = heads_at_end(tracks, metric);
  std::vector<double> logs;
  for (std::size_t i = 0; i < start.size(); ++i) {
    if (!(start[i] > 0 && end[i] > 0 && std::isfinite(start[i]) && std::isfinite(end[i]))) continue;
    const double ratio = end[i] / start[i];
    logs.push_back(std::log(ratio));
    growth.grown_heads += ratio >= least_growth ? 1 : 0;
    growth.shrunk_heads += ratio < 1 / least_growth ? 1 : 0;
  }
  growth.heads = logs.size();
  if (logs.empty()) return growth;
  const MeanInterval interval = mean_interval(logs);
  growth.mean = std::exp(interval.mean);
  growth.low = std::exp(interval.low);
  growth.high = std::exp(interval.high);
  growth.grown = growth.mean >= least_growth && (logs.size() == 1 || growth.low > 1);
  growth.shrunk = growth.mean < 1 / least_growth && (logs.size() == 1 || growth.high < 1);
  return growth;
}

VolumeKnob knob_of(const Growth& keys, const Growth& queries, const Growth& ratio) {
  const double growth_of_ratio = std::isnan(ratio.mean) ? queries.mean / keys.mean : ratio.mean;
  if (!keys.grown && !queries.grown) return VolumeKnob::neither;
  if (!queries.grown && growth_of_ratio < 1 / least_growth) return VolumeKnob::keys;
  if (!keys.grown && growth_of_ratio >= least_growth) return VolumeKnob::queries;
  return VolumeKnob::both;
}

// Limits of 10 % ask for more digits than other numbers.
std::string factor_text(double factor) {
  return factor < 10 ? fmt::format("{:.3f}", factor) : number_text(factor);
}

// "key norms grew by a factor of 1.31 (95 % interval 1.2 to 1.4; 12 of 16 heads grew, 0 shrank)"
std::string growth_text(std::string_view what, const Growth& growth) {
  if (std::isnan(growth.mean)) return fmt::format("{} are not known at both ends of the run", what);
  const std::string factor = factor_text(growth.mean);
  const std::string change = growth.grown    ? fmt::format("grew by a factor of {} (", factor)
                             : growth.shrunk ? fmt::format("shrank by a factor of {} (", factor)
                                             : fmt::format("changed by a factor of {} (", factor);
  const std::string interval =
      std::isnan(growth.low) ? ""
                             : fmt::format("95 % interval {}; ",
                                           fmt::format("{} to {}", factor_text(growth.low), factor_text(growth.high)));
  return fmt::format("{} {}{}{} of {} grew, {} shrank)", what, change, interval, growth.grown_heads,
                     counted(growth.heads, "head"), growth.shrunk_heads);
}

std::string_view headline(VolumeKnob knob) {
  constexpr std::array<std::string_view, 4> headlines = {
      "The keys are the volume knob", "The queries are the volume knob", "Keys and queries both turn the volume up",
      "Neither keys nor queries turn the volume up"};
  return headlines[static_cast<std::size_t>(knob)];
}

ordered_json growth_json(const Growth& one) {
  if (one.heads == 0) return nullptr;
  return {{"mean", one.mean},
          {"low", one.low},
          {"high", one.high},
          {"heads", one.heads},
          {"grown_heads", one.grown_heads},
          {"shrunk_heads", one.shrunk_heads},
          {"grown", one.grown},
          {"shrunk", one.shrunk}};
}

}  // namespace

VolumeKnobFinding find_volume_knob(const RunTracks& run) {
  const Tracks& tracks = source_for(run, {"q_norm", "k_norm"});
  VolumeKnobFinding found;
  found.basis = basis_of(tracks, {"q_norm", "k_norm"});
  if (!found.basis.not_tracked.empty()) {
    found.sentence = not_tracked_text(found.basis.not_tracked);
    return found;
  }
  if (!found.basis.has_course()) {
    found.sentence = "Not answered: growth needs two moments, and there is one.";
    return found;
  }
  found.queries = growth_of(tracks, "q_norm");
  found.keys = growth_of(tracks, "k_norm");
  found.ratio = growth_of(tracks, "qk_ratio");
  const bool known = found.keys.heads > 0 && found.queries.heads > 0;
  if (known) found.knob = knob_of(found.keys, found.queries, found.ratio);
  found.sentence = fmt::format("{}: {}; {}.", known ? headline(*found.knob) : "Not answered",
                               growth_text("key norms", found.keys), growth_text("query norms", found.queries));
  if (!std::isnan(found.ratio.mean))
    found.sentence += fmt::format(" Their ratio ‖q‖/‖k‖ changed by a factor of {}.", factor_text(found.ratio.mean));
  return found;
}

ordered_json to_json(const VolumeKnobFinding& found) {
  ordered_json object = answer_json(found.sentence, found.basis);
  for (const Growth* one : {&found.queries, &found.keys, &found.ratio})
    object[std::string(one->metric)] = growth_json(*one);
  return object;
}

std::string tables_of(const VolumeKnobFinding& found) {
  std::vector<Row> rows;
  for (const Growth* growth : {&found.queries, &found.keys, &found.ratio})
    if (growth->heads > 0)
      rows.push_back({fmt::format("`{}`", growth->metric), number_text(growth->mean),
                      interval_text(growth->low, growth->high), std::to_string(growth->heads),
                      std::to_string(growth->grown_heads), std::to_string(growth->shrunk_heads)});
  return table_text({"quantity", "end / start", "95 % interval", "heads", "grew", "shrank"}, rows);
}

}  // namespace headscope
