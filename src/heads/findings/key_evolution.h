// How keys evolve at each depth: norm, energy in one dimension, redundancy, and the profile at the end.
#pragma once

#include <array>

#include "core/missing.h"
#include "heads/findings/answer.h"

namespace headscope {

inline constexpr std::array key_evolution_rules = {
    Rule{"dips",
         "The mean key norm of a third of the layers (early, middle, final) dips when its lowest value lies at least "
         "2 % below the first.",
         /*of_a_course=*/true},
    Rule{"rises", "It rises when the last value lies at least 2 % above the lowest.", /*of_a_course=*/true},
    Rule{"energy_in_one_dimension",
         "The energy in one dimension is (k_max_abs_mean / k_norm)^2, the mean over heads at the end; k_top_energy is "
         "the share of all energy in the dimension that holds the most."},
    Rule{"checkmark",
         "The key norms by layer at the end have the checkmark shape when the lowest layer is one of the first third, "
         "from "
         "there on the rank correlation of norm and depth is at least 0.8, and the last layer's norm is at least 1.1 "
         "times the lowest; undecided for fewer than four layers."},
};

struct GroupEvolution {
  GroupLayers group;
  GroupCurve norm;
  std::optional<bool> dips, rises;                                 // nothing: not known, or one moment only
  double rise = missing;                                           // end over lowest
  double energy_in_one_dimension = missing, top_energy = missing;  // at the end
  double cosine_start = missing, cosine_end = missing;
};

struct KeyEvolution {
  Basis basis;
  std::vector<GroupEvolution> groups;
  std::vector<double> profile;               // k_norm of each layer at the end
  std::optional<std::int64_t> lowest_layer;  // of the profile
  double depth_correlation = missing;        // of norm and depth from there on
  std::optional<bool> checkmark;             // nothing: undecided
  std::string sentence;
};

KeyEvolution find_key_evolution(const RunTracks& run);

// Every number in full, and the tables of summary.md.
nlohmann::ordered_json to_json(const KeyEvolution& found);
std::string tables_of(const KeyEvolution& found);

}  // namespace headscope
