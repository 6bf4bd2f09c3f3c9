// The processes of `headscope train --ranks 4`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace headscope {

// The threads of each of so many ranks, unless the user says otherwise: the cores are shared out.
std::int64_t threads_of_a_rank(std::int64_t count);

// The exit code of a rank that leaves the message to another one: 64 more where --ranks started it. launch_ranks()
// prints a message itself when every rank did so.
int silent_exit_code(int code);

// How long ranks may go on where another one failed. Rank 0 may be writing a checkpoint; the others write nothing.
struct GraceOfRanks {
  double first = 0, others = 0;  // seconds
};

// Runs this program so many times with the arguments that it was given, as ranks of this machine, and waits for all of
// them. A signal that asks to stop, or to pause, is passed on to each; the second one that asks to stop kills them.
// Where a rank fails, the others get some seconds to end by themselves. They are killed when this process dies.
// Returns their exit code: 2 before 1 before 130 before 0. Throws Error(Fault::runtime) where they cannot be started,
// and where none of them could say what happened; `hint` says how to go on. To be called before there are threads.
int launch_ranks(std::int64_t count, const GraceOfRanks& grace, const std::function<std::string()>& hint);

}  // namespace headscope
