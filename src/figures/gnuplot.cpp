#include "figures/gnuplot.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include "core/atomic_file.h"
#include "core/descriptor.h"
#include "core/error.h"
#include "core/interrupt.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    std::string line = text.substr(from, end - from);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back()))) line.pop_back();
    if (line.find_first_not_of(" \t^") != std::string::npos) lines.push_back(line);
    from = end + 1;
  }
  return lines;
}

struct LocatedMessage {
  std::string script, text;  // "line 7: what is wrong"
};

// "NAME.gp" line 7: what is wrong (some versions put a comma behind the name); nothing for any other line.
std::optional<LocatedMessage> parse_located(std::string_view line) {
  const std::size_t quote = line.find('"', 1);
  if (!line.starts_with('"') || quote == std::string_view::npos) return std::nullopt;
  const std::string_view script = line.substr(1, quote - 1);
  line.remove_prefix(quote + 1);
  if (line.starts_with(',')) line.remove_prefix(1);
  if (!line.starts_with(" line ") || line.find(": ") == std::string_view::npos) return std::nullopt;
  if (line.substr(line.find(": ") + 2).starts_with("warning")) return std::nullopt;
  return LocatedMessage{std::string(script), std::string(line.substr(1))};
}

// gnuplot repeats the command, puts a caret below it, and then says what is wrong.
void read_failure(const std::string& printed, GnuplotRun& run) {
  const auto lines = lines_of(printed);
  for (const std::string& line : lines) {
    const auto located = parse_located(line);
    if (!located) continue;
    run.script = located->script;
    run.message = located->text;
    return;
  }
  run.message = lines.empty() ? "it printed nothing" : lines.front();
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// In the child, between fork and exec: only calls that are safe there. A parent that is killed takes the child along,
// which would otherwise go on writing into a folder that nobody has locked.
[[noreturn]] void become_gnuplot(char* const* arguments, const char* folder, const char* log, pid_t parent,
                                 int report) {
  const auto stand_in = [](const char* file, int flags, int descriptor) {
    const int opened = ::open(file, flags, 0644);
    return opened >= 0 && ::dup2(opened, descriptor) >= 0;
  };
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == parent && stand_in("/dev/null", O_RDONLY, STDIN_FILENO) &&
      stand_in("/dev/null", O_WRONLY, STDOUT_FILENO) &&
      stand_in(log, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO) &&  // a file cannot fill up as a pipe does
      ::chdir(folder) == 0)
    ::execvp(arguments[0], arguments);
  const int fault = errno;
  static_cast<void>(!::write(report, &fault, sizeof fault));
  ::_exit(127);
}

pid_t spawn(std::vector<std::string> arguments, const fs::path& folder, const fs::path& log) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    fail_runtime("cannot draw figures: cannot start gnuplot: {}", std::strerror(errno));
  const Descriptor answer(ends[0]);
  std::optional<Descriptor> report(ends[1]);
  const std::vector<char*> texts = pointers(arguments);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become_gnuplot(texts.data(), folder.c_str(), log.c_str(), parent, report->get());
  if (child < 0) fail_runtime("cannot draw figures: cannot start gnuplot: {}", std::strerror(errno));
  report.reset();
  int fault = 0;
  if (::read(answer.get(), &fault, sizeof fault) != sizeof fault) return child;  // exec closed the pipe
  ::waitpid(child, nullptr, 0);
  if (fault == ENOENT)
    fail_runtime("cannot draw figures: gnuplot is not installed; install it (Debian, Ubuntu: apt install gnuplot-nox)");
  fail_runtime("cannot draw figures: cannot start gnuplot: {}", std::strerror(fault));
}

// Ctrl-C must not wait for a gnuplot that hangs.
int wait_for(pid_t child) {
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) fail_runtime("cannot draw figures: lost gnuplot: {}", std::strerror(errno));
    if (interrupt_requested()) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

GnuplotRun run_gnuplot(const std::vector<std::string>& scripts, const fs::path& folder) {
  static std::atomic<unsigned> counter = 0;  // runs beside each other need a log each
  const fs::path log = fs::absolute(folder) / fmt::format("gnuplot-{}.log", counter++);
  std::vector<std::string> arguments = {"gnuplot", "-d"};
  arguments.insert(arguments.end(), scripts.begin(), scripts.end());
  const int status = wait_for(spawn(std::move(arguments), folder, log));
  const std::string printed = read_file(log);
  GnuplotRun run;
  run.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (run.ok)
    run.warnings = printed;
  else if (WIFSIGNALED(status))
    run.message = fmt::format("it was ended by signal {}", WTERMSIG(status));
  else
    read_failure(printed, run);
  return run;
}

}  // namespace headscope
