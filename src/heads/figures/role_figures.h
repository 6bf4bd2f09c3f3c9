// The roles of heads: which head has which, and how many have it over training.
#pragma once

#include <string>
#include <vector>

#include "figures/figure.h"
#include "heads/metrics.h"
#include "formats/table.h"

namespace headscope {

struct RoleMapData {
  std::string title;               // the run's or model's name; may be empty
  std::vector<std::string> roles;  // names in order: a role's place is its colour; the last one is grey
  std::size_t layers = 0, heads = 0;
  std::vector<std::size_t> role_of;  // [layer][head], places in `roles`
  std::vector<double> score_of;      // [layer][head], 0 to 1: how clear the role is
};

// `role_map`: a tile for each head, the stronger coloured the clearer its role is.
Figure role_map_figure(const RoleMapData& data);

struct RoleTimelineData {
  std::string title;
  std::vector<Moment> moments;
  std::vector<std::string> roles;  // as above
  std::vector<Numbers> share;      // [role][moment]; at each moment they sum to 1
};

// `role_timeline`: the shares of all heads, stacked, against tokens. Of one moment, or where no head ever has another
// role, it says so.
Figure role_timeline_figure(const RoleTimelineData& data);

}  // namespace headscope
