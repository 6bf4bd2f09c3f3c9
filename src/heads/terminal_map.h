// One measurement of all heads, as a map of layers x heads for a terminal.
#pragma once

#include <string>

#include "heads/tracks.h"

namespace headscope {

// A row for each layer, a number for each head; with colours, the background goes from dark (lowest) to light. Heads
// that do not fit into `columns` characters are shown as one shade each. Below it: what is shown, and its range.
std::string terminal_map(const Tracks& tracks, std::size_t moment, const Metric& metric, bool colours,
                         std::size_t columns);

}  // namespace headscope
