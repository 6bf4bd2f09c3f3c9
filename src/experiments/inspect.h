// `headscope inspect`: every head of a checkpoint, measured once.
#pragma once

#include "core/console.h"
#include "heads/inspection.h"

namespace headscope {

// Measures into a run folder: heads.parquet, layers.parquet, gamma.parquet and probes.parquet, and the summary and
// roles of this moment. A complete run that is resumed is read instead. Throws Error(Fault::input) on a bad checkpoint
// or bad data.
Inspection inspect(const InspectJob& job, Console& console, const WriteMore& write_more = {});

}  // namespace headscope
