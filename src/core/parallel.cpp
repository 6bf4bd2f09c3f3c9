#include "core/parallel.h"

#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace headscope {

void parallel_for(std::size_t count, std::size_t workers, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  std::exception_ptr first_error;
  std::mutex error_mutex;

  const auto work = [&] {
    for (std::size_t index = next++; index < count && !stop; index = next++) {
      try {
        job(index);
      } catch (...) {
        const std::scoped_lock lock(error_mutex);
        if (!first_error) first_error = std::current_exception();
        stop = true;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(workers, count); ++i) threads.emplace_back(work);
    work();
  }
  if (first_error) std::rethrow_exception(first_error);
}

std::size_t available_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return static_cast<std::size_t>(CPU_COUNT(&allowed));
  return std::max(1U, std::thread::hardware_concurrency());
}

bool environment_names_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return false;
  char* end = nullptr;
  return std::strtol(text, &end, 10) > 0 && (*end == '\0' || *end == ',' || *end == ' ');
}

}  // namespace headscope
