// How one content of a run folder takes the place of another, in steps that a kill at any moment leaves repairable.
//
//   .writing     what a command has written so far that appears only at its end; a leftover after a kill
//   .publishing  the same when all of it is there: it is moved into the run folder now, or by the next command
//   .replaced    the run that was there before: back when the new one fails at its start, gone when it is complete
//   .removing    what is being removed; a leftover after a kill
//
// Where the manifests are tells how far a process got (all functions need the lock of the folder):
//   .replaced without a manifest                       the old run was being set aside, or put back: put back the rest
//   .replaced with a manifest, none in the run folder  the new run had not begun: the old one goes back
//   .replaced with a manifest, and one beside it       the new run has begun; it is complete, or can be resumed
#pragma once

#include <filesystem>

#include "run/names.h"

namespace headscope {

// Moves what is ours in the run into .replaced, its manifest last; what the user put there stays. What a run that never
// completed had replaced stays in .replaced, and that run itself is removed.
void set_aside(const std::filesystem::path& run, const RunNames& names);

// Removes what there is of the new run and puts back the old one.
void put_back(const std::filesystem::path& run, const RunNames& names);

// The new run is complete: what it replaced goes away.
void drop_replaced(const std::filesystem::path& run);

// .writing becomes .publishing, and its files take their places, the manifest last. Files of the same name are
// replaced, others stay. Throws Error(Fault::runtime), and has changed nothing, when a file has the name of a folder
// that is needed, or a folder that of a file.
void publish(const std::filesystem::path& run);

// After a kill: finishes what was begun, or takes it back. The caller has removed leftovers.
void repair(const std::filesystem::path& run, const RunNames& names);

// Removes what killed processes left below `inside` of the run. In part, it is a leftover all the same.
void remove_leftovers(const std::filesystem::path& run, const RunNames& names,
                      const std::filesystem::path& inside = {});

// Removes a file or a folder of ours (relative to the run); a folder goes to .removing first, so that it is never there
// in part.
void remove_ours(const std::filesystem::path& run, const std::filesystem::path& relative);

}  // namespace headscope
