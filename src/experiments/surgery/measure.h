// The validation loss of a model after operations on its keys.
#pragma once

#include <vector>

#include "core/console.h"
#include "heads/surgery.h"
#include "probe/probe.h"

namespace headscope {

// Every operation that the options name, on the same batches; singular directions are those of the first. Throws
// Error(Fault::interrupted) after a signal.
SurgeryLosses measure_surgery(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                              const SurgeryOptions& options, Console& console);

}  // namespace headscope
