// A process waits for another one that opens or ends the same run.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "core/console.h"

namespace headscope {

// Where a message goes; empty: nowhere.
using Say = std::function<void(const std::string& text)>;

//   for (Waiting waiting(run, say, "", "go on with: …"); !is_free(); waiting.again()) {}
class Waiting {
 public:
  // `until`: what ends the wait beside that process, "; goes on without it when …". `hint`: for who interrupts it.
  Waiting(std::filesystem::path run, Say say, std::string until, std::string hint)
      : run_(std::move(run)), say_(std::move(say)), until_(std::move(until)), hint_(std::move(hint)) {}

  // Waits for 50 ms. After some seconds it says once for whom. Throws Error(Fault::interrupted) after a signal.
  void again();
  [[nodiscard]] double seconds() const { return seconds_since(start_); }
  // Whether to look at the age of a claim this time, which costs a file.
  [[nodiscard]] bool looks_at_ages() const { return moments_ % moments_per_age == 0; }

 private:
  static constexpr int moments_per_age = 100;
  void say_for_whom() const;

  std::filesystem::path run_;
  Say say_;
  std::string until_, hint_;
  Clock::time_point start_ = Clock::now();
  int moments_ = 0;
};

}  // namespace headscope
