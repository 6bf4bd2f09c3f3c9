// The roles of a run's heads: labels at the last moment, timeline and transitions, as tables, JSON and text.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/table.h"
#include "heads/roles/labels.h"

namespace headscope {

struct RolesResult {
  RoleDefinition definition;
  std::string source;  // "train" or "probe"
  HeadCounts counts;
  Moment moment;                // the last one
  std::vector<HeadRole> heads;  // at that moment: [layer][query head]
  RoleTimeline timeline;
  std::vector<Score> unmeasured;  // asked for by the definition

  [[nodiscard]] std::vector<std::int64_t> role_counts() const;  // by label, mixed last
};

// The probes, which see the same batch at every moment; the training batches where there are no probes, or when asked.
const Tracks& roles_source(const RunTracks& run, bool from_training = false);

// `d_k`: the head dimension; 0 when it is not known. Throws Error(Fault::input) when no query head was measured, or no
// moment has all metrics that the definition asks for.
RolesResult roles_of(const Tracks& tracks, const RoleDefinition& definition, std::int64_t d_k);

// Every table ends with `definition` and `definition_hash`.
Table roles_table(const RolesResult& result);             // layer, head, key_head, role, clarity, every score
Table role_timeline_table(const RolesResult& result);     // step, tokens, role, share
Table role_transitions_table(const RolesResult& result);  // layer, head, step, tokens, from, to

nlohmann::ordered_json to_json(const RolesResult& result);

// One letter for each label, mixed ('.') last: the first letter of one of the role's words that no role before it has,
// then any of its letters, then any letter.
std::string role_letters(const RoleDefinition& definition);

// A map of layers x heads with its legend, the counts, and how stable the labels are.
std::string to_terminal(const RolesResult& result);

}  // namespace headscope
