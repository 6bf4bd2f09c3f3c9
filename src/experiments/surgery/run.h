// `headscope surgery`: operations on the keys of a checkpoint, and what they cost, in a run folder.
#pragma once

#include <string>

#include "core/console.h"
#include "heads/surgery.h"
#include "run/run_folder.h"

namespace headscope {

struct SurgeryJob {
  SurgeryOptions options;
  RunFolderOptions folder;
  std::string theme = "light";
};

// Writes a run folder (docs/surgery.md). Throws Error; bad input leaves no folder.
SurgeryOutcome run_surgery(const SurgeryJob& job, Console& console);

}  // namespace headscope
