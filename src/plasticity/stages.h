// The time that each stage of an analysis takes, summed over workers.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace headscope {

enum class Stage { read, regress, normality, sample, plasticity, checks, write };

class StageTimes {
 public:
  static constexpr std::array<std::string_view, 7> names = {"read",       "regress", "ks",   "sample",
                                                            "plasticity", "checks",  "write"};

  // From any thread.
  void add(Stage stage, std::chrono::nanoseconds time) {
    std::atomic_ref(total_[static_cast<std::size_t>(stage)]) += time.count();
  }
  [[nodiscard]] double seconds(std::size_t stage) const { return static_cast<double>(total_[stage]) * 1e-9; }

 private:
  std::array<std::int64_t, names.size()> total_{};
};

// Returns work() and adds its time to the stage.
template <class Work>
auto timed(StageTimes& times, Stage stage, Work&& work) {
  struct Timer {
    StageTimes& times;
    Stage stage;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
    ~Timer() { times.add(stage, std::chrono::steady_clock::now() - start); }
  } const timer{times, stage};
  return work();
}

}  // namespace headscope
