#include "heads/findings/key_evolution.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "stats/rank_correlation.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr double least_change = 0.02, least_correlation = 0.8, least_last = 1.1;
constexpr std::int64_t least_layers = 4;

double energy_in_one_dimension(const Tracks& tracks, const GroupLayers& group) {
  if (!tracks.has("k_norm") || !tracks.has("k_max_abs_mean")) return missing;
  const std::size_t end = tracks.moments.size() - 1;
  const auto norms = tracks.at("k_norm", end, group.first, group.last),
             largest = tracks.at("k_max_abs_mean", end, group.first, group.last);
  std::vector<double> shares;
  for (std::size_t i = 0; i < norms.size(); ++i) shares.push_back(std::pow(largest[i] / norms[i], 2));
  return finite_mean(shares);
}

GroupEvolution evolution_of(const Tracks& tracks, const GroupLayers& group) {
  GroupEvolution found;
  found.group = group;
  found.norm = group_curve(tracks, "k_norm", group);
  found.rise = found.norm.end / found.norm.lowest;
  if (tracks.moments.size() > 1) {
    if (std::isfinite(found.norm.start)) found.dips = found.norm.lowest <= (1 - least_change) * found.norm.start;
    if (std::isfinite(found.rise)) found.rises = found.rise >= 1 + least_change;
  }
  const std::size_t end = tracks.moments.size() - 1;
  found.energy_in_one_dimension = energy_in_one_dimension(tracks, group);
  found.top_energy = group_mean(tracks, "k_top_energy", end, group);
  found.cosine_start = group_mean(tracks, "k_cosine", 0, group);
  found.cosine_end = group_mean(tracks, "k_cosine", end, group);
  return found;
}

void judge_profile(KeyEvolution& found) {
  const auto layers = static_cast<std::int64_t>(found.profile.size());
  const bool complete = std::ranges::all_of(found.profile, [](double norm) { return std::isfinite(norm); });
  if (layers == 0 || !complete) return;
  const auto lowest = std::ranges::min_element(found.profile);
  found.lowest_layer = lowest - found.profile.begin();
  const std::vector<double> norms(lowest, found.profile.end());
  std::vector<double> depth;
  for (std::size_t i = 0; i < norms.size(); ++i) depth.push_back(static_cast<double>(i));
  found.depth_correlation = rank_correlation(norms, depth).rho;
  if (layers < least_layers) return;
  found.checkmark = layer_group(*found.lowest_layer, layers) == LayerGroup::early &&
                    found.depth_correlation >= least_correlation && norms.back() >= least_last * norms.front();
}

// "the middle layers (8 to 14) dipped from 8 to 7.1 (step 100) and rose to 9.5"
std::string group_text(const GroupEvolution& found, bool has_course) {
  const GroupCurve& norm = found.norm;
  const std::string group = layers_text(found.group);
  if (!has_course) return fmt::format("{} in the {}", number_text(norm.end), group);
  if (!found.dips || !found.rises) return fmt::format("the {} ended at {}", group, number_text(norm.end));
  const std::string start = number_text(norm.start), end = number_text(norm.end);
  if (*found.dips && *found.rises)
    return fmt::format("the {} dipped from {} to {} (step {}) and rose to {}", group, start, number_text(norm.lowest),
                       norm.lowest_at->step, end);
  if (*found.dips) return fmt::format("the {} fell from {} to {}", group, start, end);
  if (*found.rises) return fmt::format("the {} rose from {} to {}", group, start, end);
  return fmt::format("the {} ended at {}, within 2 % of the start ({})", group, end, start);
}

// A correlation: "0.94", with the digits that keep it on its side of the limit.
std::string correlation_number(double value, std::initializer_list<double> limits) {
  std::string text = fixed_text(value, 2, limits);
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

// "the lowest norm is in layer 3 (2.89), the last layer has 9.94, 3.44 times that"
std::string ends_text(const KeyEvolution& found) {
  const auto lowest = static_cast<std::size_t>(*found.lowest_layer);
  const std::string least = number_text(found.profile[lowest]);
  if (lowest + 1 == found.profile.size())
    return fmt::format("the lowest norm is in the last layer, {} ({})", lowest, least);
  const double ratio = found.profile.back() / found.profile[lowest];
  return fmt::format("the lowest norm is in layer {} ({}), the last layer has {}{}", lowest, least,
                     number_text(found.profile.back()),
                     std::isfinite(ratio) ? fmt::format(", {} times that", fixed_text(ratio, 2, {least_last})) : "");
}

std::string profile_text(const KeyEvolution& found) {
  if (!found.lowest_layer) return " The profile by layer is not known.";
  if (found.profile.size() == 1) return "";
  std::string numbers = ends_text(found);
  if (!found.checkmark)
    return fmt::format(" By depth, {}; the checkmark shape is judged from {} layers on.", numbers, least_layers);
  if (!std::isnan(found.depth_correlation))
    numbers += fmt::format("; from there on norm and depth have a rank correlation of {}",
                           correlation_number(found.depth_correlation, {least_correlation}));
  return fmt::format(" The profile by layer {} the checkmark shape (lowest in the first third, then rising): {}.",
                     *found.checkmark ? "has" : "does not have", numbers);
}

// What the group of the last layers shows besides its norm.
std::string deepest_text(const GroupEvolution& deepest, bool has_course) {
  std::string text;
  const std::string group =
      fmt::format("{} layer{}", name_of(deepest.group.group), deepest.group.first == deepest.group.last ? "" : "s");
  if (!std::isnan(deepest.energy_in_one_dimension))
    text += fmt::format(" In the {} one dimension holds {} of the energy of a key.", group,
                        percent_text(deepest.energy_in_one_dimension));
  if (!std::isnan(deepest.cosine_end))
    text += fmt::format(" Two keys of the {} have a mean cosine of {}{}.", group, number_text(deepest.cosine_end),
                        has_course ? fmt::format(" ({} at the start)", number_text(deepest.cosine_start)) : "");
  return text;
}

}  // namespace

KeyEvolution find_key_evolution(const RunTracks& run) {
  const Tracks& tracks = source_for(run, {"k_norm"});
  KeyEvolution found;
  found.basis = basis_of(tracks, {"k_norm", "k_max_abs_mean", "k_top_energy", "k_cosine"});
  if (!tracks.has("k_norm")) {
    found.sentence = not_tracked_text(std::array{std::string("k_norm")});
    return found;
  }
  for (const GroupLayers& group : layer_groups(tracks.counts.layers))
    found.groups.push_back(evolution_of(tracks, group));
  for (std::int64_t layer = 0; layer < tracks.counts.layers; ++layer)
    found.profile.push_back(finite_mean(tracks.at("k_norm", tracks.moments.size() - 1, layer, layer)));
  judge_profile(found);
  std::vector<std::string> groups;
  const bool has_course = found.basis.has_course();
  for (const GroupEvolution& group : found.groups) groups.push_back(group_text(group, has_course));
  found.sentence = (has_course ? "Key norms: " : "The mean key norm is ") + joined(groups) + "." + profile_text(found) +
                   deepest_text(found.groups.back(), has_course);
  return found;
}

ordered_json to_json(const KeyEvolution& found) {
  ordered_json groups;
  for (const GroupEvolution& one : found.groups)
    groups[std::string(name_of(one.group.group))] = {{"k_norm", curve_json(one.norm)},
                                                     {"dips", known(one.dips)},
                                                     {"rises", known(one.rises)},
                                                     {"rise", one.rise},
                                                     {"energy_in_one_dimension", one.energy_in_one_dimension},
                                                     {"k_top_energy", one.top_energy},
                                                     {"k_cosine_start", one.cosine_start},
                                                     {"k_cosine_end", one.cosine_end}};
  ordered_json object = answer_json(found.sentence, found.basis);
  object["groups"] = groups;
  object["profile"] = list_json(found.profile);
  object["lowest_layer"] = known(found.lowest_layer);
  object["depth_correlation"] = found.depth_correlation;
  object["checkmark"] = known(found.checkmark);
  return object;
}

std::string tables_of(const KeyEvolution& found) {
  const auto yes_or_no = [](const std::optional<bool>& value) { return !value ? "–" : *value ? "yes" : "no"; };
  std::vector<Row> rows;
  if (!found.basis.has_course()) {
    for (const GroupEvolution& one : found.groups)
      rows.push_back({layers_text(one.group), number_text(one.norm.end), percent_text(one.energy_in_one_dimension),
                      percent_text(one.top_energy), number_text(one.cosine_end)});
    return table_text({"layers", "norm", "energy in one dimension", "in the top dimension", "cosine"}, rows);
  }
  for (const GroupEvolution& one : found.groups)
    rows.push_back({layers_text(one.group), number_text(one.norm.start),
                    fmt::format("{} ({})", number_text(one.norm.lowest), step_cell(one.norm.lowest_at)),
                    number_text(one.norm.end), yes_or_no(one.dips), yes_or_no(one.rises),
                    percent_text(one.energy_in_one_dimension), percent_text(one.top_energy),
                    number_text(one.cosine_start), number_text(one.cosine_end)});
  return table_text({"layers", "norm at start", "lowest (step)", "at end", "dips", "rises", "energy in one dimension",
                     "in the top dimension", "cosine at start", "at end"},
                    rows);
}

}  // namespace headscope
