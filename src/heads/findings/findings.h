// What a run says about the research questions (seeds 000, 001, 002).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "heads/findings/key_evolution.h"
#include "heads/findings/norm_entropy.h"
#include "heads/findings/norm_split.h"
#include "heads/findings/rank_collapse.h"
#include "heads/findings/volume_knob.h"

namespace headscope {

struct Findings {
  HeadCounts counts;
  NormSplit norm_split;
  NormEntropy norm_entropy;
  RankCollapse rank_collapse;
  VolumeKnobFinding volume_knob;
  KeyEvolution key_evolution;
};

// Curves over time come from the source with more moments, final states from its last moment; a metric that only the
// other source has comes from there. The same run gives the same findings: simulations have a fixed seed.
Findings find(const RunTracks& run);

// Every number in full; null for what was not measured. `rules` holds the sentences by which each question is answered.
nlohmann::ordered_json to_json(const Findings& findings);

// summary.md: each question's answer in plain sentences, then its numbers; the rules at the end.
std::string to_markdown(const Findings& findings, std::string_view title);

// The answers for a terminal, wrapped to 100 columns.
std::string to_terminal(const Findings& findings);

}  // namespace headscope
