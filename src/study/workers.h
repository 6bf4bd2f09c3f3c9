// `study --jobs N` and `study --devices 0,1`: worker processes train the runs of a study side by side. Each takes the
// next run that nobody has claimed (run/claim.h). The process that starts them shows their progress, and computes
// nothing. A worker speaks JSON, a line for each message: it gets its job on standard input and tells on standard
// output how its run is doing; what it writes to standard error is shown.
#pragma once

#include <string>
#include <vector>

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
};

// What the program is called with to be a worker.
constexpr const char* worker_command = "study-worker";

// Starts a worker for each device, the second when the first has opened the study. A worker that dies is started again,
// and takes over what it had. Returns whether one of them wrote the verdict; another process may have done so. Throws
// Error when a run failed and the others are done, after a signal, or when the study cannot be opened.
bool train_side_by_side(const WorkerJob& job, const std::vector<std::string>& devices, Console& console);

// The worker's end of the pipes.
class WorkerBoard : public RunBoard {
 public:
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
  void fail(const std::string& run, const std::string& label, const Error& error) override;
  void concluded() override;
  void stopped(const Error& error);

 private:
  Clock::time_point told_;
  std::int64_t steps_ = 0;  // of the run
};

// This process is one of several that a launcher or an array of Slurm started: they train one study together.
bool is_one_of_several_tasks();

// GPUs of --devices: nothing for "all". Throws Error(Fault::input).
std::vector<int> parse_devices(const std::string& text);

}  // namespace headscope
