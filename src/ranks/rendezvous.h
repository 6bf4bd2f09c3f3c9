// How the ranks of a run find each other: in a store on the host of rank 0, or in that of torchrun.
#pragma once

#include <functional>
#include <string>

#include "core/error.h"
#include "launch/place.h"
#include "ranks/backend.h"

namespace headscope {

// Returns when all ranks have come, with the store that they share. Where that does not happen within `timeout`
// seconds, or a rank came twice, or a signal asks to stop, one rank throws an Error that says it, and the others one
// without text. Ranks that do not even reach the store cannot agree on who speaks: then it is the first of each
// machine. Rank 0 says after some seconds whom it waits for.
C10dStore rendezvous(const RankPlace& place, double timeout, const std::function<void(const std::string&)>& say);

// Ends the start of all ranks: one throws the error, the others one without text.
[[noreturn]] void end_rendezvous(const C10dStore& store, const RankPlace& place, const Error& error);

}  // namespace headscope
