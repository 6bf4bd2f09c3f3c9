// What a tracked run shows: findings and roles from its tracks, then files and figures from these.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heads/findings/findings.h"
#include "heads/roles/roles.h"
#include "heads/tracks.h"

namespace headscope {

// What figures and texts need to know of a run beside its tracks.
struct RunFacts {
  std::string title;     // of the figures: "first (tiny)"
  std::int64_t d_k = 0;  // 0: not known
};

constexpr const char* roles_name = "roles.json";

struct HeadSummary {
  std::optional<Findings> findings;  // none when nothing was measured
  std::optional<RolesResult> roles;  // none when attention was not
};

HeadSummary summarise(const RunTracks& tracks, const RunFacts& facts);

// Writes a file of the run, by its name in it: RunFolder::write.
using WriteFile = std::function<void(const std::filesystem::path& name, std::string_view content)>;

// summary.md and summary.json, and the files of the roles.
void write_summary(const HeadSummary& summary, const RunFacts& facts, const WriteFile& write);

// roles.parquet, role_timeline.parquet, role_transitions.parquet and roles.json.
void write_roles(const RolesResult& roles, const WriteFile& write);

// Figures into `out`/plots; returns every file. The titles of roles name what is not as training itself writes it: the
// definition, the source, the step.
std::vector<std::filesystem::path> draw_summary(const RunTracks& tracks, const HeadSummary& summary,
                                                const RunFacts& facts, const std::filesystem::path& out,
                                                const std::string& theme);
std::vector<std::filesystem::path> draw_roles(const RolesResult& roles, const RunFacts& facts,
                                              const std::filesystem::path& out, const std::string& theme);

// Of a run that is there, from its files: the title and d_k in its manifest, or in that of the run that holds the
// folder (a condition of a study); the roles by the definition and of the source that roles.json keeps, where there is
// one; the summary with them.
RunFacts read_facts(const std::filesystem::path& run);
std::optional<RolesResult> read_roles(const RunTracks& tracks, const RunFacts& facts, const std::filesystem::path& run);
HeadSummary read_summary(const RunTracks& tracks, const RunFacts& facts, const std::filesystem::path& run);

// The figures of such a run again, into `out`/plots; those of roles that are beside the run's own (roles_place) into
// `out`/roles/…/plots.
std::vector<std::filesystem::path> draw_tracked_run(const std::filesystem::path& run, const std::filesystem::path& out,
                                                    const std::string& theme);

}  // namespace headscope
