// Which scores make which role: read from YAML, so that anyone can replace the built-in definition.
//
//   id: seeds-1
//   roles:
//     static_sink: {focused: 0.5, constant: 0.5}
//     ...
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "heads/roles/scores.h"

namespace headscope {

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
