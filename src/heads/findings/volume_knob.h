// Phase 4 of the research plan: does the model set the scale of its scores through keys or through queries?
#pragma once

#include <array>

#include "core/missing.h"
#include "heads/findings/answer.h"

namespace headscope {

inline constexpr std::array volume_knob_rules = {
    Rule{"growth",
         "Growth is end over start of a head's mean norm; its mean over heads is the geometric one, with a 95 % t "
         "interval on the log scale. Heads that are not positive at both moments do not count. qk_product is q_norm "
         "times k_norm of the key head that the query head reads: scores grow with it.",
         /*of_a_course=*/true},
    Rule{"grown",
         "A quantity has grown when its mean growth is at least 1.1 and the interval lies above 1, and has shrunk when "
         "it is below 1/1.1 and the interval lies below 1; with one head the mean alone decides. A head has grown or "
         "shrunk by the same limits.",
         /*of_a_course=*/true},
    Rule{"volume_knob",
         "The volume has been turned up when qk_product has grown. Then the volume knob is keys when k_norm has grown "
         "and q_norm has not, queries when q_norm has grown and k_norm has not, both when both have. It is neither "
         "otherwise.",
         /*of_a_course=*/true},
};

enum class VolumeKnob { keys, queries, both, neither };
constexpr std::array<std::string_view, 4> volume_knob_names = {"keys", "queries", "both", "neither"};

struct Growth {
  std::string_view metric;
  double mean = missing, low = missing, high = missing;
  std::size_t heads = 0, grown_heads = 0, shrunk_heads = 0;
  bool grown = false, shrunk = false;
};

struct VolumeKnobFinding {
  Basis basis;
  Growth queries{"q_norm"}, keys{"k_norm"}, ratio{"qk_ratio"}, product{"qk_product"};
  std::optional<VolumeKnob> knob;  // nothing: not tracked, or one moment only
  std::string sentence;

  [[nodiscard]] std::optional<std::string_view> knob_name() const {
    return knob ? std::optional(volume_knob_names[static_cast<std::size_t>(*knob)]) : std::nullopt;
  }
};

VolumeKnobFinding find_volume_knob(const RunTracks& run);

// Every number in full, and the tables of summary.md.
nlohmann::ordered_json to_json(const VolumeKnobFinding& found);
std::string tables_of(const VolumeKnobFinding& found);

}  // namespace headscope
