#include "study/study_power.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stats/power.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

ordered_json seeds_json(const PairedDesign& design) {
  const auto count = [](std::optional<std::size_t> n) { return n ? ordered_json(*n) : ordered_json(); };
  return {{"deviation", design.deviation},
          {"family", design.family},
          {"seeds_for_different", count(pairs_for_different(design))},
          {"seeds_for_equivalent", count(pairs_for_equivalent(design))}};
}

std::string count_text(const ordered_json& power, const char* name) {
  return power.at(name).is_null() ? fmt::format("> {}", most_pairs) : power.at(name).dump();
}

std::string percent_text(const ordered_json& chance, const char* name) {
  return fmt::format("{:.0f} %", 100 * chance.at(name).get<double>());
}

}  // namespace

ordered_json power_of(const Verdict& verdict) {
  ordered_json object = ordered_json::object();
  for (const Effect& effect : verdict.effects) {
    if (effect.pairs() < 2) continue;
    const auto in_family = [&](const Effect& other) {
      return other.pairs() > 1 && other.contrast.is_control == effect.contrast.is_control;
    };
    const auto family = static_cast<std::size_t>(std::ranges::count_if(verdict.effects, in_family));
    const double deviation = effect.test.difference.standard_error * std::sqrt(static_cast<double>(effect.pairs()));
    object[effect.contrast.name] = seeds_json({deviation, verdict.tau, family});
  }
  return object;
}

std::string power_text(const Verdict& verdict) {
  const ordered_json powers = power_of(verdict);
  if (powers.empty()) return "power: unknown; a deviation needs two seeds\n";
  std::string text =
      fmt::format("  seeds for 80 %   deviation   different at {:g}   equivalent at 0\n", 2 * verdict.tau);
  for (const auto& [name, power] : powers.items())
    text += fmt::format("  {:<15}  {:<10.3g}  {:<15}  {}\n", name, power.at("deviation").get<double>(),
                        count_text(power, "seeds_for_different"), count_text(power, "seeds_for_equivalent"));
  return text;
}

ordered_json power_table(double tau) {
  ordered_json rows = ordered_json::array();
  for (const double share : {0.2, 0.42, 0.6, 1.0, 1.5}) {
    const PairedDesign design{share * tau, tau};
    rows.push_back(seeds_json(design));
    for (const std::size_t n : {3, 5, 8, 12})
      rows.back()["chances"].push_back({{"seeds", n},
                                        {"different_at_1.3_tau", chance_of_different(design, 1.3 * tau, n)},
                                        {"different_at_2_tau", chance_of_different(design, 2 * tau, n)},
                                        {"equivalent_at_0", chance_of_equivalent(design, 0, n)}});
  }
  return rows;
}

std::string power_table_text(double tau) {
  std::string text =
      fmt::format("  deviation  seeds  different at {:<5g}  at {:<5g}  equivalent at 0\n", 1.3 * tau, 2 * tau);
  for (const ordered_json& row : power_table(tau)) {
    const auto deviation = row.at("deviation").get<double>();
    for (const ordered_json& chance : row.at("chances"))
      text += fmt::format("  {:<9g}  {:<5}  {:<18}  {:<8}  {}\n", deviation, chance.at("seeds").dump(),
                          percent_text(chance, "different_at_1.3_tau"), percent_text(chance, "different_at_2_tau"),
                          percent_text(chance, "equivalent_at_0"));
    text += fmt::format("  {:<9g}  for 80 %: {} (different at {:g}), {} (equivalent at 0)\n", deviation,
                        count_text(row, "seeds_for_different"), 2 * tau, count_text(row, "seeds_for_equivalent"));
  }
  return text;
}

}  // namespace headscope
