// Where the time of an analysis goes, summed over workers.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace headscope {

enum class Stage { read, regress, normality, sample, plasticity, write };

class StageTimes {
 public:
  static constexpr std::array<std::string_view, 6> names = {"read", "regress", "ks", "sample", "plasticity", "write"};

  void add(Stage stage, std::chrono::nanoseconds time) { total_[static_cast<std::size_t>(stage)] += time.count(); }
  [[nodiscard]] double seconds(std::size_t stage) const { return static_cast<double>(total_[stage]) * 1e-9; }

 private:
  std::array<std::atomic<std::int64_t>, names.size()> total_{};
};

// Adds the time of a scope to one stage.
class StageTimer {
 public:
  StageTimer(StageTimes& times, Stage stage) : times_(times), stage_(stage) {}
  ~StageTimer() { times_.add(stage_, std::chrono::steady_clock::now() - start_); }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  StageTimes& times_;
  Stage stage_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace headscope
