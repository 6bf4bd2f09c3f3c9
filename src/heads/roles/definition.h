// The scores of heads, and which of them make which role: read from YAML, so that anyone can replace the built-in
// definition.
//
//   id: seeds-1
//   roles:
//     static_sink: {focused: 0.5, constant: 0.5}
//     ...
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/config.h"
#include "heads/tracks.h"

namespace headscope {

// Continuous scores of every query head: the one place where their formulas are defined.

// Names this set of formulas in every output; another formula is another id.
constexpr std::string_view scores_id = "scores-1";

// All are clamped to [0, 1]. Key metrics are those of the key head that the query head reads.
enum class Score {
  focused,          // 1 - entropy_norm
  broad,            // entropy_norm
  constant,         // constancy
  query_dependent,  // 1 - constancy
  axis_aligned,  // (k_axis - 1/sqrt(d)) / (1 - 1/sqrt(d)), d the head dimension: 0 for a flat key, 1 for a one-hot one
  high_norm,     // r / (1 + r), r = k_norm / median of k_norm over all key heads of the model: 1/2 is typical
  low_norm,      // 1 / (1 + r)
  consistent,    // consistency
  sink,          // as measured, like the rest
  previous,
  self,
  induction,
};

template <>
struct EnumNames<Score> {
  static constexpr std::array<std::string_view, 12> names = {"focused",      "broad",     "constant", "query_dependent",
                                                             "axis_aligned", "high_norm", "low_norm", "consistent",
                                                             "sink",         "previous",  "self",     "induction"};
};
constexpr std::size_t n_scores = EnumNames<Score>::names.size();
constexpr std::string_view score_name(Score score) {
  return EnumNames<Score>::names[static_cast<std::size_t>(score)];
}

// The metric that a score is made of.
constexpr std::string_view metric_of(Score score) {
  constexpr std::array<std::string_view, n_scores> metrics = {
      "entropy_norm", "entropy_norm", "constancy", "constancy", "k_axis", "k_norm",
      "k_norm",       "consistency",  "sink",      "previous",  "self",   "induction"};
  return metrics[static_cast<std::size_t>(score)];
}

// The scores of one head; NaN where the metric was not measured.
struct HeadScores {
  std::array<double, n_scores> values{};
  [[nodiscard]] double operator[](Score score) const { return values[static_cast<std::size_t>(score)]; }
  [[nodiscard]] double& operator[](Score score) { return values[static_cast<std::size_t>(score)]; }
};

// All query heads at one moment: [layer][head]. Without the head dimension (0), axis_aligned is k_axis itself.
std::vector<HeadScores> scores_at(const Tracks& tracks, std::size_t moment, std::int64_t head_dimension = 0);

// What a head is called that has no role.
constexpr std::string_view mixed_role = "mixed";

struct Minimum {
  Score score;
  double least;  // holds from here on: score >= least
};

struct Role {
  std::string name;
  std::vector<Minimum> minimums;  // at least one

  // NaN does not hold.
  [[nodiscard]] bool holds(const HeadScores& scores) const;
};

struct RoleDefinition {
  std::string id;
  std::string origin;  // the file, for messages
  std::vector<Role> roles;

  // Of what decides (formulas, order, names, minimums), not of the id, comments or layout.
  [[nodiscard]] std::string hash() const;
  // The name of a label: the index of a role, or the number of roles for `mixed`.
  [[nodiscard]] std::string_view name_of(std::size_t label) const {
    return label < roles.size() ? std::string_view(roles[label].name) : mixed_role;
  }
};

// Throws Error(Fault::input) naming the place and the key. The id of the built-in definition is refused for another
// one: labels of different thresholds must not carry the same name. Entries without a value are left out, as in any
// configuration.
RoleDefinition parse_role_definition(const std::string& text, const std::string& origin);
RoleDefinition read_role_definition(const std::filesystem::path& file);

// configs/roles/seeds.yaml, as it was when the program was built.
std::string_view default_roles_text();
const RoleDefinition& default_role_definition();

}  // namespace headscope
