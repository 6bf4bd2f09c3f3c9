// The one thread pool: independent jobs, numbered, taken in order by the next free worker.
#pragma once

#include <cstddef>
#include <functional>

namespace headscope {

// Calls job(0) … job(count - 1) on `workers` threads (on the caller's thread when workers is 1). After the first
// exception no further job is started; it is thrown to the caller when the running jobs have ended.
void parallel_for(std::size_t count, std::size_t workers, const std::function<void(std::size_t)>& job);

// The number of cores this process may use.
std::size_t available_cores();

// Whether OMP_NUM_THREADS says how many threads to use: a whole number from 1 on, or a list that begins with one.
bool environment_names_threads();

}  // namespace headscope
