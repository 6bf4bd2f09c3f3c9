// SIGINT, SIGTERM and SIGHUP (a terminal that is closed) ask a run to stop at the next safe point, where its state is
// saved.
#pragma once

#include <array>
#include <csignal>
#include <cstdint>

namespace headscope {

// Those that ask to stop.
inline constexpr std::array stop_signals = {SIGINT, SIGTERM, SIGHUP};

// Signals within so long are one request: timeout(1) and others signal a process and then its group.
constexpr std::int64_t milliseconds_of_one_request = 500;

// While a guard exists, these signals set a flag instead of ending the process; a second request ends it at once. A
// guard inside another one changes nothing.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

[[nodiscard]] bool interrupt_requested();

// From now on a second signal changes nothing. For a process whose starter passes signals on: it may get one twice.
void take_repeated_signals_as_one();

}  // namespace headscope
