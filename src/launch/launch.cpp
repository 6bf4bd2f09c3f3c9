#include "launch/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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
#include "core/interrupt.h"
#include "core/parallel.h"
#include "core/regular_file.h"
#include "launch/children.h"
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
  if (arguments.empty()) fail_runtime("--ranks: cannot read /proc/self/cmdline: {}", std::strerror(errno));
  return arguments;
}

void set_variable(const char* name, std::int64_t value) {
  ::setenv(name, std::to_string(value).c_str(), /*replace=*/1);
}

// What a rank finds in its environment. Between fork and exec.
void set_place(std::int64_t rank, std::int64_t count, const Listening& here) {
  set_variable("RANK", rank);
  set_variable("LOCAL_RANK", rank);
  set_variable("WORLD_SIZE", count);
  set_variable("LOCAL_WORLD_SIZE", count);
  set_variable("MASTER_PORT", here.port);
  set_variable(launched_variable, count);
  ::setenv("MASTER_ADDR", "127.0.0.1", 1);
  for (const char* other : {"TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
    ::unsetenv(other);
  if (!environment_names_threads()) set_variable("OMP_NUM_THREADS", threads_of_a_rank(count));
  if (rank == 0) {
    set_variable(listening_variable, here.socket.get());
    ::fcntl(here.socket.get(), F_SETFD, 0);
  }
}

constexpr int silent = 64;  // added to 1, 2 and 130

struct Rank {
  pid_t process = 0;
  std::optional<int> status = {};  // of waitpid; empty: it runs
  bool was_stopped = false;        // ended by a signal that asks to stop: it did not save

  [[nodiscard]] bool was_signalled() const { return status && WIFSIGNALED(*status); }
  [[nodiscard]] bool was_killed() const { return was_signalled() && !was_stopped; }
  // Of ours are 0, 1, 2 and 130: whoever ends with another code could not say why.
  [[nodiscard]] bool is_silent() const { return was_signalled() || !is_of_ours(WEXITSTATUS(status.value_or(0))); }
  [[nodiscard]] int code() const {
    if (was_stopped) return static_cast<int>(Fault::interrupted);
    const int code = WEXITSTATUS(status.value_or(0));
    if (was_killed() || (is_silent() && !is_of_ours(code - silent))) return 1;
    return code - (is_silent() ? silent : 0);
  }
  static bool is_of_ours(int code) {
    constexpr std::array codes = {0, static_cast<int>(Fault::runtime), static_cast<int>(Fault::input),
                                  static_cast<int>(Fault::interrupted)};
    return std::ranges::find(codes, code) != codes.end();
  }
};

class RankProcesses {
 public:
  RankProcesses(std::int64_t count, const GraceOfRanks& grace)
      : grace_(grace), signals_({SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCHLD}) {
    const Listening here = listen_here();
    const std::vector<std::string> arguments = own_arguments();
    for (std::int64_t rank = 0; rank < count; ++rank) {
      const pid_t process = start_child(arguments, SIGKILL, signals_, [&] { set_place(rank, count, here); });
      if (process < 0) {
        const int reason = errno;
        signal_children(running(), SIGKILL);
        fail_runtime("--ranks {}: cannot start rank {}: {}; use fewer, or raise the limit of processes (ulimit -u)",
                     count, rank, std::strerror(reason));
      }
      ranks_.push_back({process});
    }
  }

  void wait() {
    while (!running().empty()) {
      const int number = signals_.next(/*seconds=*/1);
      if (number == SIGTSTP)
        pause_with(running());
      else if (number != 0 && number != SIGCHLD)
        stop(number);
      collect();
      // Those that are connected notice that one has ended. Those that still wait for it to come do not.
      constexpr double seconds_to_notice = 5;
      if (failed_ && !told_ && seconds_since(*failed_) > seconds_to_notice) {
        signal_children(running(), SIGTERM);
        told_ = true;
      }
      if (failed_) kill_late_ones();
    }
  }

  // Of the ranks that say why they ended, or were killed; otherwise of the one that ended first, which the others miss.
  [[nodiscard]] int code() const {
    for (const int first : {2, 1, 130})
      for (const Rank& rank : ranks_)
        if ((!rank.is_silent() || rank.was_killed()) && rank.code() == first) return first;
    return first_code_;
  }

  // A rank that waits for others to come and is told to stop says nothing. Those that miss one do not know how it
  // ended.
  void say_the_rest(const std::function<std::string()>& hint) const {
    const auto killed = std::ranges::find_if(
        ranks_, [&](const Rank& rank) { return rank.was_killed() && !killed_here_.contains(rank.process); });
    const bool is_killed = killed != ranks_.end();
    if (std::ranges::any_of(ranks_, [](const Rank& rank) { return rank.code() != 0 && !rank.is_silent(); })) {
      if (is_killed) Console().warn(fmt::format("{}; {}", killed_text(*killed), hint()));
      return;
    }
    if (is_killed) fail_runtime("{}; {}", killed_text(*killed), hint());
    if (code() == static_cast<int>(Fault::interrupted))
      throw Error(Fault::interrupted, fmt::format("interrupted before the ranks could save; {}", hint()));
    if (code() != 0) fail_runtime("the ranks ended, and none of them could say why; {}", hint());
  }

 private:
  [[nodiscard]] std::string killed_text(const Rank& rank) const {
    const int number = WTERMSIG(*rank.status);
    return fmt::format("rank {} of {} (process {}) was ended by signal {} ({})", &rank - ranks_.data(), ranks_.size(),
                       rank.process, number, ::strsignal(number));
  }

  [[nodiscard]] std::vector<pid_t> running() const {
    std::vector<pid_t> running;
    for (const Rank& rank : ranks_)
      if (!rank.status) running.push_back(rank.process);
    return running;
  }

  void kill_late_ones() {
    const double seconds = seconds_since(*failed_);
    std::vector<pid_t> late;
    for (const Rank& rank : ranks_)
      if (!rank.status && seconds > (&rank == ranks_.data() ? grace_.first : grace_.others))
        late.push_back(rank.process);
    killed_here_.insert(late.begin(), late.end());
    signal_children(late, SIGKILL);
  }

  // The user asks the ranks to save and end; the second time, to end at once.
  void stop(int number) {
    const bool again = asked_at_ && 1000 * seconds_since(*asked_at_) >= milliseconds_of_one_request;
    const int passed_on = again ? SIGKILL : number;
    if (!asked_at_) asked_at_ = Clock::now();
    asked_.insert(passed_on);
    signal_children(running(), passed_on);
  }

  void collect() {
    for (Rank& rank : ranks_) {
      int status = 0;
      if (rank.status || ::waitpid(rank.process, &status, WNOHANG) != rank.process) continue;
      rank.status = status;
      const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      // Also by this process, where it did not do what the user asked.
      rank.was_stopped = number == SIGINT || number == SIGTERM || number == SIGHUP || asked_.contains(number) ||
                         (asked_at_ && killed_here_.contains(rank.process));
      if (rank.code() == 0 || failed_) continue;
      failed_ = Clock::now();
      first_code_ = rank.code();
    }
  }

  GraceOfRanks grace_;
  HeldSignals signals_;
  std::vector<Rank> ranks_;
  std::set<int> asked_;                        // signals that the user gave, as they were passed on
  std::optional<Clock::time_point> asked_at_;  // when the first one came
  std::optional<Clock::time_point> failed_;    // when the first rank ended that was not done
  int first_code_ = 0;                         // its exit code
  bool told_ = false;                          // the others, then, to stop
  std::set<pid_t> killed_here_;                // those that did not, and were killed
};

}  // namespace

int silent_exit_code(int code) {
  return std::getenv(launched_variable) != nullptr ? code + silent : code;
}

std::int64_t threads_of_a_rank(std::int64_t count) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(available_cores()) / count);
}

int launch_ranks(std::int64_t count, const GraceOfRanks& grace, const std::function<std::string()>& hint) {
  RankProcesses ranks(count, grace);
  ranks.wait();
  ranks.say_the_rest(hint);
  return ranks.code();
}

}  // namespace headscope
