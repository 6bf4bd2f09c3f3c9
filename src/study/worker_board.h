// A worker's end of `study --jobs N` (workers.h): a process that trains runs of a study for the one that started it. It
// speaks JSON, a line for each message: it gets its job on standard input and tells on a pipe of its own how its run is
// doing. What it or a library writes to standard output or standard error is shown as text.
#pragma once

#include <unistd.h>

#include <string>

#include "run/run_folder.h"
#include "study/run_board.h"
#include "study/study_options.h"

namespace headscope {

struct WorkerJob {
  StudyOptions options;
  RunFolderOptions folder;
  std::string theme;
  std::string device;  // of this worker: "cpu", "cuda:1"; the configuration says "cpu" or "cuda"
  ConsoleOptions console;
  bool goes_on = false;  // the study is there: where it is not, it was moved away, and does not begin again
};

// What the program is called with to be a worker.
constexpr const char* worker_command = "study-worker";

// The descriptor of a worker's messages.
constexpr int worker_messages = 3;

// The first line that a worker is sent.
nlohmann::ordered_json to_json(const WorkerJob& job);

// One message, all of it. A process that is gone does not read it; that is noticed elsewhere.
void send_line(int file, const nlohmann::ordered_json& message);

class WorkerBoard : public RunBoard {
 public:
  WorkerBoard();
  WorkerJob job();  // the first line that it is sent

  void opened() override;
  void waits_for(const std::string& label, const ClaimOwner& owner) override;
  FailedRuns failed() override;
  void take(const std::string& run, const std::string& label) override;
  void begin(std::int64_t steps, std::int64_t done) override;
  void step(std::int64_t done, const std::string& note) override;
  void saving() override {}  // the one that started it passed the signal on, and said so
  void end() override;
  // The worker stops: its GPU may be of no more use to it. The one that started it starts another.
  bool fail(const std::string& run, const std::string& label, const Error& error) override;
  void concluded() override;
  void stopped(const Error& error);

 private:
  int messages_ = STDOUT_FILENO;
  Clock::time_point told_;
  std::int64_t steps_ = 0;  // of the run
};

}  // namespace headscope
