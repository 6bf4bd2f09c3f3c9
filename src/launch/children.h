// Processes that run this program again: ranks (launch.h) and the workers of a study.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace headscope {

// Signals that wait, while an object lives, until this process asks for them. Children that it starts do not have them
// blocked, and their ends are seen, also where this process was started with SIGCHLD ignored. Other signals that are
// ignored stay so.
class HeldSignals {
 public:
  explicit HeldSignals(const std::vector<int>& numbers);
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  // The number of one that came, 0 where none comes within these seconds.
  [[nodiscard]] int next(int seconds) const;
  // What was blocked before.
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t held_{}, before_{};
};

// Starts this program with these arguments (the first is its name). `prepare` runs in the child before that, and does
// what is allowed between fork and exec. A signal of the terminal reaches this process alone, which passes it on once.
// The child gets `at_death` when this process is gone. -1 and errno where it cannot be started.
pid_t start_child(const std::vector<std::string>& arguments, int at_death, const HeldSignals& held,
                  const std::function<void()>& prepare);

void signal_children(const std::vector<pid_t>& children, int number);

// Ctrl-Z: the children stop with this process, and go on with it.
void pause_with(const std::vector<pid_t>& children);

}  // namespace headscope
