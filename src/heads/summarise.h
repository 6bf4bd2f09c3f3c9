// What a tracked run shows: findings, roles and figures, from its tables into its folder.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "heads/findings/findings.h"
#include "heads/roles/roles.h"
#include "heads/tracks.h"

namespace headscope {

// What figures and texts need to know of a run beside its tables.
struct RunFacts {
  std::string title;     // of the figures: "tiny"
  std::int64_t d_k = 0;  // 0: not known
};
// From the manifest of a run, or of the one that holds the folder (a condition of a study).
RunFacts facts_of_run(const std::filesystem::path& run);

// Writes summary.md and summary.json into `out`.
Findings write_summary(const RunTracks& tracks, const RunFacts& facts, const std::filesystem::path& out);

// Roles need attention: whether it was measured.
bool has_roles(const RunTracks& tracks);

// Writes roles.parquet, role_timeline.parquet, role_transitions.parquet and roles.json into `out`.
RolesResult write_roles(const RunTracks& tracks, const RunFacts& facts, const RoleDefinition& definition,
                        bool from_training, const std::filesystem::path& out);

// The roles once more as `write_roles` last found them, by the definition and of the source that roles.json keeps.
RolesResult roles_again(const RunTracks& tracks, const RunFacts& facts, const std::filesystem::path& run);

// Figures into `out`/plots; returns every file. Those of roles, too, where heads have them.
std::vector<std::filesystem::path> draw_tracks(const RunTracks& tracks, const RunFacts& facts,
                                               const std::filesystem::path& out, const std::string& theme);
std::vector<std::filesystem::path> draw_roles(const RolesResult& roles, const RunFacts& facts,
                                              const std::filesystem::path& out, const std::string& theme);

// The figures of a run again, into `out`/plots: from its tables, with the roles that `write_roles` last found.
std::vector<std::filesystem::path> draw_tracked_run(const std::filesystem::path& run, const std::filesystem::path& out,
                                                    const std::string& theme);

}  // namespace headscope
