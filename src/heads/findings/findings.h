// What a run says about the research questions (docs/train.md).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "heads/findings/by_layer.h"
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
  ByLayer by_layer;

  // Of the main source.
  [[nodiscard]] const Basis& basis() const { return by_layer.basis; }
};

// All answers come from the fixed batch of the probes where it was measured, otherwise from the training batches; a
// question whose metrics only the other source has is answered from there. The same run gives the same findings:
// simulations have a fixed seed.
Findings find(const RunTracks& run);

// Every number in full; null for what was not measured. `rules` holds the sentences by which each question is answered.
nlohmann::ordered_json to_json(const Findings& findings);

// summary.md: its first line says of what, when and on what batch; then each question's answer in plain sentences and
// its numbers, every layer, and the rules. Of one moment it does not speak of training. `name` is the run's: "tiny".
std::string to_markdown(const Findings& findings, std::string_view name);

// The answers for a terminal, wrapped to 100 columns.
std::string to_terminal(const Findings& findings);

}  // namespace headscope
