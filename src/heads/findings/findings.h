// What a run says about the research questions (docs/train.md).
#pragma once

#include <array>
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

// A question: its key in the JSON, and how it is asked on a terminal and on a page, over a course and of one moment
// (empty: it is not asked of one).
struct Question {
  std::string_view key, label, question, label_of_one, question_of_one;
};

inline constexpr Question split_question{"norm_split", "Heads split", "Do the heads of a layer split by key norm?",
                                         "Heads split", "Do the heads of a layer split by key norm?"};
inline constexpr Question sharpness_question{"norm_entropy", "Sharpness", "Does a high key norm mean sharp attention?",
                                             "Sharpness", "Does a high key norm mean sharp attention?"};
inline constexpr Question rank_question{"rank_collapse", "Rank", "Do keys lose dimensions?", "Rank",
                                        "How many dimensions do keys use?"};
inline constexpr Question volume_question{"growth", "Volume knob", "Do keys or queries turn the volume up?", "", ""};
inline constexpr Question keys_question{"key_evolution", "Key evolution", "How do keys evolve by depth?",
                                        "Keys by depth", "How do keys differ by depth?"};
inline constexpr std::array questions = {split_question, sharpness_question, rank_question, volume_question,
                                         keys_question};

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
