// `headscope roles`: the roles of the heads of a run or of a checkpoint.
#pragma once

#include "heads/inspection.h"

namespace headscope {

constexpr const char* roles_command = "roles";

struct RolesJob {
  std::filesystem::path place;       // a folder with heads.parquet, or a checkpoint
  std::filesystem::path definition;  // empty: the built-in one
  std::string source = "probe";      // of a run: "probe" or "train"
  std::optional<std::int64_t> step;  // of a run: the last measurement up to there; none: the last one
  std::vector<ConfigEntry> changes;  // of a checkpoint: other data, as InspectOptions has them
  std::string device = "auto";
  std::string theme = "light";
  RunFolderOptions folder;  // no `out`: of a run, into the run itself (roles_place)
};

struct RolesOutcome {
  std::filesystem::path out;
  RolesResult roles;
};

// Below a run: what training wrote itself stays where it is, and everything else has a folder of its own,
// "roles/mine-1/train/step-50".
std::filesystem::path roles_place(const std::string& definition, const std::string& source,
                                  std::optional<std::int64_t> step);

// The folder has the tables that roles are found in; otherwise it is taken for a checkpoint.
bool is_tracked_run(const std::filesystem::path& place);

// How a checkpoint is measured.
using Inspect = std::function<Inspection(const InspectJob& job, const WriteMore& write_more)>;

// Writes tables, roles.json and the figures. Throws Error.
RolesOutcome find_roles(const RolesJob& job, const Inspect& inspect);

}  // namespace headscope
