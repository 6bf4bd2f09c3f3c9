#include "report/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include "core/atomic_file.h"
#include "core/error.h"

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

// Standard input and output are /dev/null, standard error goes to `log`: a file cannot fill up as a pipe does.
pid_t spawn(std::vector<std::string> arguments, const fs::path& folder, const fs::path& log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = 0;
  const int fault = posix_spawnp(&child, arguments[0].c_str(), &actions, nullptr, pointers(arguments).data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (fault == ENOENT)
    fail_runtime("cannot draw figures: gnuplot is not installed; install it (Debian, Ubuntu: apt install gnuplot-nox)");
  if (fault != 0) fail_runtime("cannot draw figures: cannot start gnuplot: {}", std::strerror(fault));
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail_runtime("cannot draw figures: lost gnuplot: {}", std::strerror(errno));
  return status;
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
