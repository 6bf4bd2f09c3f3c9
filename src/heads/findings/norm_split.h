// Phase 1 of the research plan: is a layer's mean key norm that of all its heads, or does it hide two populations?
#pragma once

#include <array>

#include "core/missing.h"
#include "heads/findings/answer.h"
#include "stats/dip_test.h"

namespace headscope {

inline constexpr std::array norm_split_rules = {
    Rule{"between_share",
         "The between-head share of a layer is var_h(k_norm) / (var_h(k_norm) + mean_h(k_norm_std^2)), variances over "
         "all of its n key heads divided by n: how much of the variance of the key norm over tokens and heads lies "
         "between heads; 0 when nothing varies by more than a millionth, unknown for one head. The model's share is "
         "the mean over layers."},
    Rule{"begins",
         "A split begins at the first moment from which on the between-head share stays above one half until the end.",
         /*of_a_course=*/true},
    Rule{"two_populations",
         "The heads are more than one population when the dip test of Hartigan and Hartigan (1985) against the uniform "
         "distribution has p < 0.05 (2000 simulated samples; at least four heads): for a layer over its heads, for the "
         "model over the heads of layers with three or more, the mean of each layer removed. The answer names the "
         "layers that pass when their p "
         "is multiplied by the number of layers tested (Bonferroni)."},
};

struct LayerSplit {
  std::int64_t layer = 0;
  std::vector<double> norms;            // k_norm of each key head at the end
  double mean = missing;                // of the norms
  double between_share = missing;       // at the end
  std::vector<double> share_over_time;  // by moment
  std::optional<Moment> begins;         // nothing where there is one moment
  TwoGroups groups;                     // of the norms
};

struct NormSplit {
  Basis basis;
  std::vector<LayerSplit> layers;
  double between_share = missing;  // at the end, mean over layers
  std::vector<double> share_over_time;
  std::optional<Moment> begins;
  DipTest within_layers;                   // of layers with three or more heads, the mean of each layer removed
  std::size_t tested_layers = 0;           // those with four heads or more
  std::vector<std::int64_t> named_layers;  // more than one population, corrected for the number of layers
  std::string sentence;
};

NormSplit find_norm_split(const RunTracks& run, DipTester& tester);

// Every number in full, and the tables of summary.md.
nlohmann::ordered_json to_json(const NormSplit& split);
std::string tables_of(const NormSplit& split);

// The rule `between_share` for one layer; heads without both values do not count.
double between_head_share(std::span<const double> norms, std::span<const double> standard_deviations);

}  // namespace headscope
