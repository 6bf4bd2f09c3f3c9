#include "heads/findings/volume_knob.h"

#include <cmath>

#include "core/text.h"
#include "stats/paired_test.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr double least_growth = 1.1;

// The heads' values at the first and at the last moment.
struct Ends {
  std::vector<double> start, end;
};

Ends ends_of(const Tracks& tracks, std::string_view metric) {
  const std::span<const double> start = tracks.at(metric, 0), end = heads_at_end(tracks, metric);
  return {{start.begin(), start.end()}, {end.begin(), end.end()}};
}

// q_norm times k_norm of the key head that the query head reads.
Ends product_ends(const Tracks& tracks) {
  Ends ends = ends_of(tracks, "q_norm");
  const Ends keys = ends_of(tracks, "k_norm");
  for (std::size_t i = 0; i < ends.start.size(); ++i) {
    const auto place = static_cast<std::int64_t>(i);
    const std::int64_t layer = place / tracks.counts.query_heads, head = place % tracks.counts.query_heads;
    const auto key = static_cast<std::size_t>(layer * tracks.counts.key_heads + tracks.key_head_of(head));
    ends.start[i] *= keys.start[key];
    ends.end[i] *= keys.end[key];
  }
  return ends;
}

Growth growth_of(std::string_view metric, const Ends& ends) {
  Growth growth{metric};
  const auto& [start, end] = ends;
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

VolumeKnob knob_of(const VolumeKnobFinding& found) {
  if (!found.product.grown || (!found.keys.grown && !found.queries.grown)) return VolumeKnob::neither;
  if (found.keys.grown && found.queries.grown) return VolumeKnob::both;
  return found.keys.grown ? VolumeKnob::keys : VolumeKnob::queries;
}

// Limits of 10 % ask for more digits than other numbers; a factor is never printed on the other side of a limit.
std::string factor_text(double factor) {
  return factor < 10 ? fixed_text(factor, 3, {1 / least_growth, 1, least_growth}) : number_text(factor);
}

std::string factor_interval(const Growth& growth) {
  return std::isnan(growth.low) ? "–" : fmt::format("{} to {}", factor_text(growth.low), factor_text(growth.high));
}

// "grew by a factor of 1.310 (95 % interval 1.200 to 1.400; 12 of 16 heads grew, 0 shrank)"; heads only when asked for.
std::string growth_text(const Growth& growth, bool with_heads) {
  const auto percent = [](double share) { return percent_text(share, {1 / least_growth, 1}); };
  std::vector<std::string> details;
  if (!std::isnan(growth.low))
    details.push_back("95 % interval " + (growth.shrunk
                                              ? fmt::format("{} to {}", percent(growth.low), percent(growth.high))
                                              : factor_interval(growth)));
  if (with_heads)
    details.push_back(fmt::format("{} of {} grew, {} shrank", growth.grown_heads, counted(growth.heads, "head"),
                                  growth.shrunk_heads));
  const std::string factor = factor_text(growth.mean), rest = fmt::format("{}", fmt::join(details, "; "));
  const std::string in_brackets = rest.empty() ? "" : fmt::format(" ({})", rest);
  if (growth.shrunk) return fmt::format("shrank to {}{}", percent(growth.mean), in_brackets);
  if (growth.grown) return fmt::format("grew by a factor of {}{}", factor, in_brackets);
  const bool small = growth.mean < least_growth && growth.mean >= 1 / least_growth;
  return fmt::format("on average {} (factor {}{}{})",
                     small ? "stayed within a factor of 1.1" : "did not change clearly", factor,
                     rest.empty() ? "" : ", ", rest);
}

std::string growth_text(std::string_view what, const Growth& growth) {
  if (std::isnan(growth.mean)) return fmt::format("{} are not known at both ends of the run", what);
  return fmt::format("{} {}", what, growth_text(growth, /*with_heads=*/true));
}

std::string headline(const VolumeKnobFinding& found) {
  constexpr std::array<std::string_view, 3> headlines = {"The keys turned the volume up",
                                                         "The queries turned the volume up",
                                                         "Keys and queries both turned the volume up"};
  if (*found.knob != VolumeKnob::neither) return std::string(headlines[static_cast<std::size_t>(*found.knob)]);
  if (found.product.grown)
    return "Neither keys nor queries alone turned the volume up (only the product of both norms grew)";
  if (found.keys.grown || found.queries.grown)
    return fmt::format("Neither turned the volume up ({} grew, but the product of both norms did not)",
                       found.keys.grown && found.queries.grown ? "both"
                       : found.keys.grown                      ? "keys"
                                                               : "queries");
  return "Neither keys nor queries turned the volume up";
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
  found.queries = growth_of("q_norm", ends_of(tracks, "q_norm"));
  found.keys = growth_of("k_norm", ends_of(tracks, "k_norm"));
  found.ratio = growth_of("qk_ratio", ends_of(tracks, "qk_ratio"));
  found.product = growth_of("qk_product", product_ends(tracks));
  const std::string both =
      fmt::format("{}; {}.", growth_text("key norms", found.keys), growth_text("query norms", found.queries));
  if (found.product.heads == 0) {
    found.sentence = "Not answered: " + both;
    return found;
  }
  found.knob = knob_of(found);
  found.sentence = fmt::format("{}: {} The product ‖q‖·‖k‖ {}.", headline(found), both,
                               growth_text(found.product, /*with_heads=*/false));
  return found;
}

ordered_json to_json(const VolumeKnobFinding& found) {
  ordered_json object = answer_json(found.sentence, found.basis);
  for (const Growth* one : {&found.queries, &found.keys, &found.ratio, &found.product})
    object[std::string(one->metric)] = growth_json(*one);
  return object;
}

std::string tables_of(const VolumeKnobFinding& found) {
  std::vector<Row> rows;
  for (const Growth* growth : {&found.queries, &found.keys, &found.ratio, &found.product})
    if (growth->heads > 0)
      rows.push_back({fmt::format("`{}`", growth->metric), factor_text(growth->mean), factor_interval(*growth),
                      std::to_string(growth->heads), std::to_string(growth->grown_heads),
                      std::to_string(growth->shrunk_heads)});
  return table_text({"quantity", "end / start", "95 % interval", "heads", "grew", "shrank"}, rows);
}

}  // namespace headscope
