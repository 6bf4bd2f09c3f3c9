// Phase 3 of the research plan: do keys lose dimensions, and do they put their energy into single ones?
#pragma once

#include <array>

#include "core/missing.h"
#include "heads/findings/answer.h"

namespace headscope {

inline constexpr std::array rank_collapse_rules = {
    Rule{"effective_rank",
         "Effective rank is a mean over the heads of a third of the layers (early, middle, final): k_pr and k_erank of "
         "the singular values of a head's keys, k_pr_vector of the components of single keys."},
    Rule{"one_hot", "A head is one-hot when its k_axis, the mean of largest component over norm, is at least 0.9."},
    Rule{"privileged",
         "A head has a privileged dimension when the same dimension holds the largest component of at least half its "
         "keys (k_top_share >= 0.5)."},
};

// The metrics of effective rank, the one for sentences first.
inline constexpr std::array<std::string_view, 3> effective_ranks = {"k_pr", "k_erank", "k_pr_vector"};

struct RankCurve {
  std::string_view metric;
  GroupLayers group;
  GroupCurve curve;
};

struct PrivilegedDimension {
  std::int64_t layer = 0, head = 0;       // of the key head
  std::optional<std::int64_t> dimension;  // nothing: k_top_dim was not tracked
  double top_share = missing, top_energy = missing;
};

struct RankCollapse {
  Basis ranks, outliers;          // the two halves may come from different sources
  std::vector<RankCurve> curves;  // of the metrics that were tracked, metric by metric
  std::size_t axis_heads = 0;     // heads with a known k_axis at the end
  std::size_t one_hot = 0;
  std::size_t share_heads = 0;                  // heads with a known k_top_share at the end
  std::vector<PrivilegedDimension> privileged;  // largest share first
  std::string sentence;

  // NaN without heads.
  [[nodiscard]] double one_hot_share() const {
    return axis_heads == 0 ? missing : static_cast<double>(one_hot) / static_cast<double>(axis_heads);
  }
};

RankCollapse find_rank_collapse(const RunTracks& run);

// Every number in full, and the tables of summary.md.
nlohmann::ordered_json to_json(const RankCollapse& found);
std::string tables_of(const RankCollapse& found);

}  // namespace headscope
