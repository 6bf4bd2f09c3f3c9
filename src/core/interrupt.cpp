#include "core/interrupt.h"

#include <csignal>

namespace headscope {
namespace {

// A signal handler can reach nothing but static storage.
volatile std::sig_atomic_t requested = 0;
volatile std::sig_atomic_t repeats_are_one = 0;
int guards = 0;

extern "C" void note_signal(int number) {
  if (requested != 0 && repeats_are_one == 0) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
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
