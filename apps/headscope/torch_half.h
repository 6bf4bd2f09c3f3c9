// The library with torch, loaded when a command computes (experiments/experiments.h).
#pragma once

#include "experiments/experiments.h"

namespace headscope {

// Loads it in the first call. Throws Error(Fault::runtime) when it is not there.
const Experiments& torch_half();

}  // namespace headscope
