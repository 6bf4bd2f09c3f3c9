#include "study/worker_board.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "core/json_text.h"

namespace headscope {

using nlohmann::ordered_json;

ordered_json to_json(const WorkerJob& job) {
  return {{"config", to_json(job.options)},
          {"out", job.folder.out.string()},
          {"overwrite", job.folder.overwrite},
          {"resume", job.folder.resume},
          {"join", job.folder.join},
          {"theme", job.theme},
          {"command_line", job.folder.command_line},
          {"device", job.device},
          {"quiet", job.console.quiet},
          {"verbose", job.console.verbose},
          {"goes_on", job.goes_on}};
}

void send_line(int file, const ordered_json& message) {
  const std::string line = json_line(message) + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(file, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

// Processes that the worker starts do not get it. Who types the command has no such pipe, and reads on standard output
// what is wrong.
WorkerBoard::WorkerBoard() {
  struct stat facts {};
  if (::fstat(worker_messages, &facts) == 0 && S_ISFIFO(facts.st_mode) &&
      ::fcntl(worker_messages, F_SETFD, FD_CLOEXEC) == 0)
    messages_ = worker_messages;
}

WorkerJob WorkerBoard::job() {
  std::string line;
  std::getline(std::cin, line);
  const ordered_json given = parse_json(line);
  if (!given.is_object()) fail_input("{} is for headscope itself; use 'headscope study --jobs N'", worker_command);
  WorkerJob job;
  job.options = resolve_setup<StudyOptions>(entries_of(given.at("config"), worker_command));
  job.folder = {given.at("out").get<std::string>(), given.at("overwrite"), given.at("resume"), given.at("join"),
                given.at("command_line")};
  job.theme = given.at("theme");
  job.device = given.at("device");
  job.console = {given.at("quiet"), given.at("verbose")};
  job.goes_on = given.at("goes_on");
  return job;
}

void WorkerBoard::opened() {
  send_line(messages_, {{"say", "opened"}});
}

void WorkerBoard::waits_for(const std::string& label, const ClaimOwner& owner) {
  send_line(messages_, {{"say", "waits"}, {"label", label}, {"host", owner.host}, {"process", owner.process}});
}

FailedRuns WorkerBoard::failed() {
  send_line(messages_, {{"say", "ask"}});
  std::string line;
  if (!std::getline(std::cin, line)) throw Error(Fault::interrupted, "the process that started this worker is gone");
  return parse_json(line).at("failed").get<FailedRuns>();
}

void WorkerBoard::take(const std::string& run, const std::string& label) {
  send_line(messages_, {{"say", "takes"}, {"run", run}, {"label", label}});
}

void WorkerBoard::begin(std::int64_t steps, std::int64_t done) {
  steps_ = steps;
  send_line(messages_, {{"say", "begin"}, {"steps", steps}, {"done", done}});
}

void WorkerBoard::step(std::int64_t done, const std::string& note) {
  if (done < steps_ && Clock::now() - told_ < std::chrono::milliseconds(100)) return;
  told_ = Clock::now();
  send_line(messages_, {{"say", "step"}, {"done", done}, {"note", note}});
}

void WorkerBoard::end() {
  send_line(messages_, {{"say", "end"}});
}

bool WorkerBoard::fail(const std::string& run, const std::string& label, const Error& error) {
  send_line(messages_,
            {{"say", "failed"}, {"run", run}, {"label", label}, {"error", error.what()}, {"exit", error.exit_code()}});
  return false;
}

void WorkerBoard::concluded() {
  send_line(messages_, {{"say", "concluded"}});
}

void WorkerBoard::stopped(const Error& error) {
  send_line(messages_, {{"say", "stopped"},
                        {"error", error.what()},
                        {"exit", error.exit_code()},
                        {"failed_runs", dynamic_cast<const RunsFailed*>(&error) != nullptr}});
}

}  // namespace headscope
