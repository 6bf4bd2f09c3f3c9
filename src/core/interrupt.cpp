#include "core/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace headscope {
namespace {

// A signal handler can reach nothing but static storage.
volatile std::sig_atomic_t requested = 0;
std::atomic<std::int64_t> requested_at = 0;  // milliseconds of the machine's clock
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
volatile std::sig_atomic_t repeats_are_one = 0;
int guards = 0;

std::int64_t milliseconds_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{1000} * now.tv_sec + now.tv_nsec / 1'000'000;
}

extern "C" void note_signal(int number) {
  const std::int64_t now = milliseconds_now();
  if (requested != 0 && repeats_are_one == 0 && now - requested_at >= milliseconds_of_one_request) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
  if (requested == 0) requested_at = now;
  requested = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  if (guards++ > 0) return;
  requested = 0;
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup stays in force
}

InterruptGuard::~InterruptGuard() {
  if (--guards > 0) return;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == note_signal) std::signal(SIGHUP, SIG_DFL);
}

bool interrupt_requested() {
  return requested != 0;
}

void take_repeated_signals_as_one() {
  repeats_are_one = 1;
}

}  // namespace headscope
