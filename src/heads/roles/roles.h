// The roles of a run's heads: the role of every query head at one moment, and over training (how many heads have which,
// and which heads change); as tables, JSON and text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/table.h"
#include "heads/roles/definition.h"

namespace headscope {

struct HeadRole {
  std::size_t label = 0;  // index of a role of the definition; their number: mixed
  // Geometric mean of the scores that the role asks for: 1 is a perfect example. NaN for mixed: there is no role whose
  // example it could be.
  double clarity = 0;
  HeadScores scores;
};

// The first role whose minimums all hold, otherwise mixed.
HeadRole role_of(const HeadScores& scores, const RoleDefinition& definition);

// [layer][head]; `head_dimension` as in scores_at.
std::vector<HeadRole> roles_at(const Tracks& tracks, std::size_t moment, const RoleDefinition& definition,
                               std::int64_t head_dimension);

// Heads by label, mixed last.
std::vector<std::int64_t> count_labels(std::span<const std::size_t> labels, const RoleDefinition& definition);

// A head's label differs from the one at the moment before.
struct RoleTransition {
  std::int64_t layer = 0, head = 0;
  Moment moment;                 // the first with the new label
  std::size_t from = 0, to = 0;  // labels
  bool operator==(const RoleTransition&) const = default;
};

// Labels of all heads at one moment: [layer][head].
struct MomentLabels {
  Moment moment;
  std::vector<std::size_t> labels;
};

struct RoleTimeline {
  std::vector<Moment> moments;
  std::vector<std::vector<double>> shares;  // [moment][label], mixed last; each moment sums to 1
  std::vector<RoleTransition> transitions;  // by moment, then layer and head

  // Those in the last quarter of the tokens (updates where tokens are not known) between the first and the last moment.
  [[nodiscard]] std::int64_t late_transitions() const;
};

RoleTimeline timeline_of(std::span<const MomentLabels> moments, const RoleDefinition& definition,
                         std::int64_t query_heads);

// The moments at which roles can be compared: those with every metric that the definition asks for and that was
// measured at all. Metrics may be taken at different steps; a label that changes only because something was not
// measured is no transition. Empty when no moment has them all.
std::vector<std::size_t> comparable_moments(const Tracks& tracks, const RoleDefinition& definition);

// The scores that the definition asks for and that were never measured: its roles that need them are not given.
std::vector<Score> unmeasured_scores(const Tracks& tracks, const RoleDefinition& definition);

struct RolesResult {
  RoleDefinition definition;
  std::string source;  // "train" or "probe"
  HeadCounts counts;
  std::optional<std::int64_t> until;  // the step that was asked for; none: the last
  Moment moment;                      // the last one up to there
  std::vector<HeadRole> heads;        // at that moment: [layer][query head]
  RoleTimeline timeline;
  std::vector<Score> unmeasured;  // asked for by the definition

  [[nodiscard]] std::vector<std::int64_t> role_counts() const;  // by label, mixed last
};

// The probes, which see the same batch at every moment; the training batches where there are no probes, or when asked.
const Tracks& roles_source(const RunTracks& run, bool from_training = false);

// `d_k`: the head dimension; 0 when it is not known. `until`: as if training had ended at this step. Throws
// Error(Fault::input) when no query head was measured, or no moment (up to there) has all metrics that the definition
// asks for.
RolesResult roles_of(const Tracks& tracks, const RoleDefinition& definition, std::int64_t d_k,
                     std::optional<std::int64_t> until = {});

// Every table ends with `definition` and `definition_hash`.
Table roles_table(const RolesResult& result);             // layer, head, key_head, role, clarity, every score
Table role_timeline_table(const RolesResult& result);     // step, tokens, role, share
Table role_transitions_table(const RolesResult& result);  // layer, head, step, tokens, from, to

nlohmann::ordered_json to_json(const RolesResult& result);

// One letter for each label, mixed ('.') last: the first letter of one of the role's words that no role before it has,
// then any of its letters, then any letter.
std::string role_letters(const RoleDefinition& definition);

// The name of a role in words: "static sink" of static_sink.
std::string role_text(std::string_view name);

// A map of layers x heads with its legend, the counts, and how stable the labels are.
std::string to_terminal(const RolesResult& result);

}  // namespace headscope
