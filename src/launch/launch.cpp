#include "launch/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/console.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/regular_file.h"
#include "launch/place.h"

namespace headscope {
namespace {

// A socket of this machine that listens: nobody else can take its port, and whoever connects early waits for rank 0.
struct Listening {
  Descriptor socket;
  int port = 0;
};

Listening listen_here() {
  Listening here{Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (!here.socket.open() || ::bind(here.socket.get(), general, length) != 0 ||
      ::listen(here.socket.get(), SOMAXCONN) != 0 || ::getsockname(here.socket.get(), general, &length) != 0)
    fail_runtime("--ranks: no socket on 127.0.0.1: {}", std::strerror(errno));
  here.port = ntohs(address.sin_port);
  return here;
}

// The arguments of this process.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

void set_variable(const char* name, std::int64_t value) {
  ::setenv(name, std::to_string(value).c_str(), /*replace=*/1);
}

// Everything between fork and exec. Never returns.
[[noreturn]] void become_rank(std::int64_t rank, std::int64_t count, const Listening& here, pid_t parent,
                              const std::vector<std::string>& arguments, const sigset_t& mask) {
  ::setpgid(0, 0);  // a terminal's signal reaches the parent alone, which passes it on once
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before the line above
  set_variable("RANK", rank);
  set_variable("LOCAL_RANK", rank);
  set_variable("WORLD_SIZE", count);
  set_variable("LOCAL_WORLD_SIZE", count);
  set_variable("MASTER_PORT", here.port);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  for (const char* other : {"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
    ::unsetenv(other);
  // The cores are shared out. The user's own choice stands.
  const auto threads = std::max<std::int64_t>(1, static_cast<std::int64_t>(available_cores()) / count);
  ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), /*replace=*/0);
  if (rank == 0) {
    set_variable(listening_variable, here.socket.get());
    ::fcntl(here.socket.get(), F_SETFD, 0);
  }
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  std::vector<char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  ::execv("/proc/self/exe", pointers.data());
  ::_exit(127);
}

struct Rank {
  pid_t process = 0;
  std::optional<int> status = {};  // of waitpid; empty: it runs
  bool was_stopped = false;        // killed by a signal that was passed on: it did not save

  [[nodiscard]] bool was_signalled() const { return status && WIFSIGNALED(*status); }
  [[nodiscard]] bool was_killed() const { return was_signalled() && !was_stopped; }
  [[nodiscard]] int code() const {
    if (was_stopped) return static_cast<int>(Fault::interrupted);
    return was_killed() ? 1 : WEXITSTATUS(status.value_or(0));
  }
};

class RankProcesses {
 public:
  RankProcesses(std::int64_t count, double grace) : grace_(grace) {
    sigemptyset(&waited_for_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCHLD}) sigaddset(&waited_for_, number);
    std::signal(SIGCHLD, SIG_DFL);  // where it is ignored, nobody could wait for the ranks
    ::sigprocmask(SIG_BLOCK, &waited_for_, &mask_);
    const Listening here = listen_here();
    const std::vector<std::string> arguments = own_arguments();
    const pid_t parent = ::getpid();
    for (std::int64_t rank = 0; rank < count; ++rank) {
      const pid_t process = ::fork();
      if (process == 0) become_rank(rank, count, here, parent, arguments, mask_);
      if (process < 0) {
        const int reason = errno;
        signal_all(SIGKILL);
        fail_runtime("--ranks {}: cannot start rank {}: {}", count, rank, std::strerror(reason));
      }
      ranks_.push_back({process});
    }
  }
  ~RankProcesses() { ::sigprocmask(SIG_SETMASK, &mask_, nullptr); }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  void wait() {
    while (std::ranges::any_of(ranks_, [](const Rank& rank) { return !rank.status; })) {
      const timespec second{1, 0};
      const int number = ::sigtimedwait(&waited_for_, nullptr, &second);
      if (number == SIGTSTP) pause();
      if (number > 0 && number != SIGCHLD && number != SIGTSTP) pass_on(number);
      collect();
      // Those that are connected notice that one was killed. Those that still wait for it to come do not.
      constexpr double seconds_to_notice = 5;
      if (killed_ && seconds_since(*killed_) > seconds_to_notice) {
        pass_on(SIGTERM);
        killed_.reset();
      }
      if (failed_ && seconds_since(*failed_) > grace_) signal_all(SIGKILL);
    }
  }

  [[nodiscard]] int code() const {
    for (const int first : {2, 1, 130})
      for (const Rank& rank : ranks_)
        if (rank.code() == first || (first == 1 && rank.code() != 0 && rank.code() != 130)) return first;
    return 0;
  }

  // A rank that ended by itself has said what happened.
  void check_that_somebody_spoke() const {
    for (const Rank& rank : ranks_)
      if (rank.code() != 0 && !rank.was_signalled()) return;
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (ranks_[i].was_killed())
        fail_runtime("rank {} of {} was ended by signal {}; go on with --resume", i, ranks_.size(),
                     WTERMSIG(*ranks_[i].status));
    if (code() != 0)
      throw Error(Fault::interrupted,
                  "interrupted before the ranks could save; what a checkpoint has goes on with --resume");
  }

 private:
  void pass_on(int number) {
    asked_.insert(number);
    signal_all(number);
  }

  void signal_all(int number) const {
    for (const Rank& rank : ranks_)
      if (!rank.status) ::kill(rank.process, number);
  }

  // Ctrl-Z stops the ranks, too, until this process goes on.
  void pause() const {
    signal_all(SIGSTOP);
    ::raise(SIGSTOP);
    signal_all(SIGCONT);
  }

  void collect() {
    for (Rank& rank : ranks_) {
      int status = 0;
      if (rank.status || ::waitpid(rank.process, &status, WNOHANG) != rank.process) continue;
      rank.status = status;
      rank.was_stopped = WIFSIGNALED(status) && asked_.contains(WTERMSIG(status));
      if (rank.code() != 0 && !failed_) failed_ = Clock::now();
      if (rank.was_killed() && !killed_) killed_ = Clock::now();
    }
  }

  double grace_;
  sigset_t waited_for_{}, mask_{};
  std::vector<Rank> ranks_;
  std::set<int> asked_;                      // signals that were passed on
  std::optional<Clock::time_point> failed_;  // when the first one did
  std::optional<Clock::time_point> killed_;  // when one was, until the others are asked to stop
};

}  // namespace

int launch_ranks(std::int64_t count, double grace) {
  RankProcesses ranks(count, grace);
  ranks.wait();
  ranks.check_that_somebody_spoke();
  return ranks.code();
}

}  // namespace headscope
