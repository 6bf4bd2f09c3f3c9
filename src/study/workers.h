// `study --jobs N` and `study --devices 0,1`: worker processes train the runs of a study side by side. Each takes the
// next run that nobody has claimed (run/claim.h). The process that starts them shows their progress, and computes
// nothing.
#pragma once

#include <string>
#include <vector>

#include "study/worker_board.h"

namespace headscope {

// Starts a worker for each device, the second when the first has opened the study. A worker that dies is started again,
// and takes over what it had. Returns whether one of them wrote the verdict; another process may have done so. Throws
// Error when a run failed and the others are done, after a signal, or when the study cannot be opened.
bool train_side_by_side(const WorkerJob& job, const std::vector<std::string>& devices, Console& console);

// GPUs of --devices: nothing for "all". Throws Error(Fault::input).
std::vector<int> parse_devices(const std::string& text);

}  // namespace headscope
