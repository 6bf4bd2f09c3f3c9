// Two small files that a training writes beside its tables, for whoever looks at a run that goes on: progress.json says
// where it is, events.jsonl what happened (docs/train.md). Neither is needed to go on with a run, so a disk that has no
// room for them does not stop it: tables and checkpoints say that the disk is full.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/console.h"
#include "core/missing.h"
#include "core/regular_file.h"
#include "heads/metrics.h"

namespace headscope {

// Where a training is. Numbers that are not known yet are missing (null in the file).
struct TrainingProgress {
  std::string time;   // UTC, "2026-11-18T12:00:00Z": when the file was written
  std::string phase;  // one of those below
  Moment moment;      // of the last update whose loss is known
  std::int64_t steps = 0;
  double loss = missing;  // of that update, nats
  double tokens_per_s = missing;
  double seconds_left = missing;
};

namespace phase {
inline constexpr const char* training = "training";
inline constexpr const char* probe = "probe";  // measures heads and the validation loss
inline constexpr const char* checkpoint = "checkpoint";
inline constexpr const char* figures = "figures";  // training is over: summary, roles and figures
inline constexpr const char* done = "done";
inline constexpr const char* interrupted = "interrupted";
inline constexpr const char* failed = "failed";
inline constexpr const char* diverged = "diverged";
}  // namespace phase

// Of a folder with a training. Nothing when there is none, or when it is damaged or cannot be read.
std::optional<TrainingProgress> read_progress(const std::filesystem::path& folder);

// Replaces the phase and the time; for what follows training. Does nothing where there is no progress.
void set_phase(const std::filesystem::path& folder, std::string_view phase);

class ProgressFile {
 public:
  // `loss`: of the last update of an earlier process, or missing. `before_writing` throws when nothing may be written
  // to the folder any more; that reaches the caller.
  ProgressFile(const std::filesystem::path& folder, const Moment& now, double loss, std::int64_t steps,
               std::function<void()> before_writing);

  // An update that is done, and the seconds that it took. The file is written if it is a second old.
  void add(const Moment& after, double loss, double tokens, double seconds);
  // Written at once if the phase is another.
  void enter(std::string_view phase);

 private:
  void write();

  std::filesystem::path file_;
  std::function<void()> before_writing_;
  TrainingProgress now_;
  std::int64_t first_step_;
  Clock::time_point started_ = Clock::now(), written_ = started_;
  double tokens_ = 0, seconds_ = 0;  // of the updates since the file was written
};

// Something that happened.
struct TrainingEvent {
  std::string time;  // UTC
  Moment moment;
  std::string kind;  // start, resume, checkpoint, probe, spike, warning, end
  std::string text;
  bool operator==(const TrainingEvent&) const = default;
};

// Those of a folder with a training, in the order of the file; none where there is no file. Lines that are not whole
// are left out: a killed process may leave one at the end. `left_out` gets the number of whole lines that are no
// events.
std::vector<TrainingEvent> read_events(const std::filesystem::path& folder, std::size_t* left_out = nullptr);

class EventLog {
 public:
  // Opens or makes the file, and cuts off a torn last line. A training that goes on from the checkpoint of a step, or
  // from the start (nothing), repeats what came after it: events of the course (checkpoint, probe, spike) behind that
  // step are removed, and those of the processes (start, resume, warning, end) stay. Throws Error(Fault::input) when
  // its name is that of a link or of something else than a file.
  EventLog(const std::filesystem::path& folder, std::optional<std::int64_t> checkpoint_step);

  // What an earlier process left, in order.
  [[nodiscard]] const std::vector<TrainingEvent>& before() const { return before_; }
  // The step of the last event of this kind that an earlier process left.
  [[nodiscard]] std::optional<std::int64_t> last_step(std::string_view kind) const;

  void append(std::string_view kind, const Moment& moment, std::string_view text);

 private:
  std::vector<TrainingEvent> before_;
  Descriptor descriptor_;
  std::int64_t end_ = 0;
};

}  // namespace headscope
