#include "launch/children.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "core/interrupt.h"

namespace headscope {
namespace {

// By nohup, for example. A signal that is held would come although it is ignored.
bool is_ignored(int number) {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

// A handler of this process must not run in the child: what it notes is forgotten by exec. Signals that are ignored
// stay so (nohup).
void reset_handlers() {
  for (const int number : stop_signals)
    if (!is_ignored(number)) std::signal(number, SIG_DFL);
}

}  // namespace

HeldSignals::HeldSignals(const std::vector<int>& numbers) {
  std::signal(SIGCHLD, SIG_DFL);  // where it is ignored, nobody can wait for a child
  sigemptyset(&held_);
  for (const int number : numbers)
    if (!is_ignored(number)) sigaddset(&held_, number);
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

HeldSignals::~HeldSignals() {
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int HeldSignals::next(int seconds) const {
  const timespec limit{seconds, 0};
  const int number = ::sigtimedwait(&held_, nullptr, &limit);
  return number > 0 ? number : 0;
}

pid_t start_child(const std::vector<std::string>& arguments, int at_death, const HeldSignals& held,
                  const std::function<void()>& prepare) {
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  sigset_t all{}, now{};
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &now);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, at_death);
    if (::getppid() != parent) ::_exit(1);  // it died before the line above
    prepare();
    std::signal(SIGTTOU, SIG_IGN);  // it writes to the terminal from a group in the background (stty tostop)
    reset_handlers();
    ::pthread_sigmask(SIG_SETMASK, &held.before(), nullptr);
    ::execv("/proc/self/exe", pointers.data());
    ::_exit(127);
  }
  const int reason = errno;
  ::pthread_sigmask(SIG_SETMASK, &now, nullptr);
  errno = reason;
  return child;
}

void signal_children(const std::vector<pid_t>& children, int number) {
  for (const pid_t child : children) ::kill(child, number);
}

void pause_with(const std::vector<pid_t>& children) {
  signal_children(children, SIGSTOP);
  ::raise(SIGSTOP);
  signal_children(children, SIGCONT);
}

}  // namespace headscope
