// Phase 2 of the research plan: does a high key norm go with sharp attention?
#pragma once

#include <array>

#include "core/missing.h"
#include "heads/findings/answer.h"
#include "stats/dip_test.h"
#include "stats/rank_correlation.h"

namespace headscope {

inline constexpr std::array norm_entropy_rules = {
    Rule{"rho",
         "rho is Spearman's rank correlation of the entropy of a query head's attention and the k_norm of the key head "
         "it reads, over query heads; its 95 % interval is Fisher's with the standard error of Bonett and Wright "
         "(2000). Query heads that share a key head are not independent: the interval is then too narrow and p too "
         "small."},
    Rule{"high_norm_means_sharp",
         "\"High norm means sharp\" is supported when the interval of rho over all heads lies below 0, contradicted "
         "when it lies above 0, undecided otherwise."},
    Rule{"clusters",
         "Norm and entropy are standardised and projected on their first principal axis; there are two clusters when "
         "the dip test of the projection has p < 0.05, and they are the two groups of least variance inside."},
};

enum class Support { supported, contradicted, undecided };
constexpr std::array<std::string_view, 3> support_names = {"supported", "contradicted", "undecided"};

// One query head at the end.
struct HeadPoint {
  std::int64_t layer = 0, head = 0;
  double norm = missing, entropy = missing;
};

struct HeadCluster {
  std::vector<HeadPoint> heads;
  double norm = missing, entropy = missing;  // means
};

struct NormEntropy {
  Basis basis;
  RankCorrelation overall;              // at the end
  std::vector<RankCorrelation> layers;  // at the end
  std::vector<double> rho_over_time;    // overall, by moment
  bool shared_key_heads = false;
  std::optional<Support> high_norm_means_sharp;  // nothing when not tracked
  DipTest cluster_test;
  HeadCluster low_norm, high_norm;  // empty unless two clusters were found
  std::string sentence;

  [[nodiscard]] bool clusters_found() const { return cluster_test.rejects(); }
};

NormEntropy find_norm_entropy(const RunTracks& run, DipTester& tester);

// Every number in full, and the tables of summary.md.
nlohmann::ordered_json to_json(const NormEntropy& found);
std::string tables_of(const NormEntropy& found);

}  // namespace headscope
