#include "study/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <set>

#include "core/interrupt.h"
#include "core/json_text.h"
#include "core/lists.h"
#include "launch/children.h"
#include "study/analyze.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

// The lines that are whole.
class Lines {
 public:
  void add(std::string_view bytes) { rest_ += bytes; }
  std::optional<std::string> next() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string line = rest_.substr(0, end);
    rest_.erase(0, end + 1);
    return line;
  }

 private:
  std::string rest_;
};

struct Pipe {
  Descriptor read, write;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail_runtime("cannot start a worker: {}", std::strerror(errno));
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
};

// A worker that was started, until it is gone.
struct Worker {
  std::string name;  // "worker 2 (cuda:1)"
  std::string device;
  pid_t process = -1;  // -1: gone
  Descriptor to, from, errors;
  Lines messages, texts;
  std::string run, label;                    // what it trains
  Clock::time_point taken;                   // when it said so
  bool was_silent = false;                   // and is killed for it
  std::optional<Clock::time_point> stopped;  // when its process was, and was not continued
  int idle_deaths = 0;                       // of its processes, one after another, none of which had a run
  std::unique_ptr<Progress> progress;
  bool has_failed = false;        // it said that its run failed
  bool says_what_failed = false;  // it ended because no run is left but those that failed
  std::optional<Error> ending;    // what it said last
};

class WorkerPool {
 public:
  WorkerPool(const WorkerJob& job, const std::vector<std::string>& devices, Console& console)
      : job_(job), console_(console), runs_(static_cast<std::size_t>(count_trainings(job.options))) {
    for (const std::string& device : devices) {
      auto worker = std::make_unique<Worker>();
      worker->device = device;
      worker->name =
          fmt::format("worker {}{}", workers_.size() + 1, device == "cpu" ? "" : fmt::format(" ({})", device));
      workers_.push_back(std::move(worker));
    }
  }
  // Whatever goes wrong here, no worker stays behind.
  ~WorkerPool() {
    for (const auto& worker : workers_) {
      if (worker->process < 0) continue;
      for (const int number : {SIGTERM, SIGCONT}) ::kill(worker->process, number);
      for (Descriptor* end : {&worker->to, &worker->from, &worker->errors})
        *end = Descriptor();  // it waits for nothing that is said here
      ::waitpid(worker->process, nullptr, 0);
    }
  }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  bool work() {
    start(*workers_.front());
    while (!running().empty()) {
      wait_for_messages();
      if (interrupt_requested()) stop_all();
      if (pausing_.next(/*seconds=*/0) == SIGTSTP) pause_with(running());
      for (const auto& worker : workers_) {
        listen(*worker);
        reap(*worker);
      }
      kill_silent_ones();
    }
    return result();
  }

 private:
  void start(Worker& worker) {
    if (stops_) return;  // after a signal nothing begins
    check_in_place();
    Pipe to, from, errors;
    // It saves and stops when this process is gone.
    const pid_t child = start_child({program_name, worker_command, job_.folder.out.string()}, SIGTERM, pausing_, [&] {
      ::dup2(to.read.get(), STDIN_FILENO);
      ::dup2(errors.write.get(), STDOUT_FILENO);  // libraries print there
      ::dup2(errors.write.get(), STDERR_FILENO);
      if (from.write.get() == worker_messages)
        ::fcntl(worker_messages, F_SETFD, 0);
      else
        ::dup2(from.write.get(), worker_messages);
    });
    if (child < 0) fail_runtime("cannot start a worker: {}; use fewer --jobs", std::strerror(errno));
    worker.process = child;
    for (Descriptor* of_the_child : {&to.read, &from.write, &errors.write})
      *of_the_child = Descriptor();  // when it is gone, its pipes end
    worker.to = std::move(to.write);
    worker.from = std::move(from.read);
    worker.errors = std::move(errors.read);
    worker.messages = worker.texts = Lines();
    worker.has_failed = worker.says_what_failed = false;
    worker.ending.reset();
    for (const Descriptor* end : {&worker.from, &worker.errors}) ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    WorkerJob job = job_;
    const bool was_started = std::exchange(has_started_, true);
    job.device = worker.device;
    if (is_open_) {  // the study is there, and what it is was said
      job.folder.overwrite = job.folder.join = false;
      job.folder.resume = job.console.quiet = job.goes_on = true;
    } else if (was_started && !job.folder.overwrite) {
      job.folder.join = true;  // the one that died may have begun it
    }
    send_line(worker.to.get(), to_json(job));
  }

  void wait_for_messages() const {
    std::vector<pollfd> files;
    for (const auto& worker : workers_)
      if (worker->process >= 0)
        for (const Descriptor* end : {&worker->from, &worker->errors}) files.push_back({end->get(), POLLIN, 0});
    constexpr int milliseconds = 100;  // a worker that dies says nothing
    ::poll(files.data(), files.size(), milliseconds);
  }

  static void read_into(Lines& lines, const Descriptor& from) {
    std::array<char, 4096> bytes{};
    for (ssize_t got = 0; (got = ::read(from.get(), bytes.data(), bytes.size())) > 0;)
      lines.add({bytes.data(), static_cast<std::size_t>(got)});
  }

  [[nodiscard]] std::vector<pid_t> running() const {
    std::vector<pid_t> running;
    for (const auto& worker : workers_)
      if (worker->process >= 0) running.push_back(worker->process);
    return running;
  }

  void listen(Worker& worker) {
    if (!worker.from.open()) return;
    read_into(worker.messages, worker.from);
    read_into(worker.texts, worker.errors);
    while (const auto line = worker.texts.next()) print_once(*line);
    while (const auto line = worker.messages.next()) {
      const ordered_json message = parse_json(*line);
      message.is_object() ? handle(worker, message) : print_once(*line);
    }
  }

  // A warning is shown once, whichever workers have it.
  void print_once(std::string_view line) {
    constexpr std::string_view of_ours = "headscope: ", of_a_warning = "warning: ";
    if (line.starts_with(of_ours)) line.remove_prefix(of_ours.size());
    if (!line.starts_with(of_a_warning)) return console_.info(line);
    if (printed_.insert(std::string(line)).second) console_.warn(line.substr(of_a_warning.size()));
  }

  void handle(Worker& worker, const ordered_json& message) {
    const std::string say = text_at(message, "say");
    const auto count = [&](const char* key) { return static_cast<std::size_t>(message.value(key, std::int64_t{0})); };
    const auto error = [&] { return Error(fault_of(message.value("exit", 1)), text_at(message, "error")); };
    if (say == "opened") {
      open_for_all();
    } else if (say == "waits") {
      ClaimOwner owner;
      owner.host = text_at(message, "host");
      owner.process = message.value("process", std::int64_t{0});
      show_waiting(text_at(message, "label"), owner);
    } else if (say == "ask") {
      send_line(worker.to.get(), {{"failed", failed_}});
    } else if (say == "takes") {
      worker.idle_deaths = 0;
      worker.run = text_at(message, "run");
      worker.label = text_at(message, "label");
      worker.taken = Clock::now();
    } else if (say == "begin") {
      worker.progress = std::make_unique<Progress>(console_, worker.label, "steps", count("steps"), count("done"));
    } else if (say == "step" && worker.progress) {
      worker.progress->reach(count("done"), text_at(message, "note"));
    } else if (say == "end") {
      worker.progress.reset();
      worker.run.clear();
    } else if (say == "failed") {
      worker.has_failed = true;
      note_failure(text_at(message, "run"), text_at(message, "label"), error());
    } else if (say == "concluded") {
      concluded_ = Clock::now();
    } else if (say == "stopped") {
      worker.ending = error();
      worker.says_what_failed = message.value("failed_runs", false);
    }
  }

  // For a process of another command; that workers wait for one another at the end is no news.
  void show_waiting(const std::string& label, const ClaimOwner& owner) {
    if (std::ranges::any_of(workers_, [&](const auto& worker) { return worker->process == owner.process; }) &&
        is_on_this_host(owner))
      return;
    const std::string text = waiting_text(label, owner);
    if (printed_.insert(text).second) console_.info(text);
  }

  void open_for_all() {
    if (is_open_) return;
    is_open_ = true;
    lock_ = open_regular_file(job_.folder.out / lock_name).descriptor;
    for (std::size_t i = 1; i < workers_.size(); ++i) start(*workers_[i]);
  }

  void note_failure(const std::string& run, const std::string& label, const Error& error) {
    fault_ = failed_.empty() ? error.fault() : std::min(fault_, error.fault());  // one that is not of the input: 1
    failed_[run] = error.what();
    console_.warn(failed_run_text(label, error));
  }

  // A worker whose process is stopped neither ends nor goes on. Another one has taken its run over, or the study is
  // complete.
  void kill_silent_ones() {
    constexpr double seconds_to_end = 60;
    const bool is_over = concluded_ && seconds_since(*concluded_) > seconds_to_end;
    const double lapse = ClaimTimes().lapse;
    const auto kill = [&](Worker& worker, const std::string& why) {
      console_.warn(fmt::format("{} (process {}) {}", worker.name, worker.process, why));
      worker.was_silent = true;
      worker.progress.reset();
      ::kill(worker.process, SIGKILL);
    };
    for (const auto& worker : workers_) {
      if (worker->process < 0 || worker->was_silent) continue;
      const auto has_lost_it = [&] {
        return std::ranges::any_of(workers_, [&](const auto& other) {
          return other != worker && !worker->run.empty() && other->run == worker->run && other->taken > worker->taken;
        });
      };
      if (has_lost_it()) {  // it may have ended, or said that its run has, before the other one took that
        listen(*worker);
        reap(*worker);
      }
      if (worker->process < 0) continue;
      if (has_lost_it())
        kill(*worker, fmt::format("was silent for {:.0f} s, or its {} was removed; {} is taken over", lapse, claim_name,
                                  worker->label));
      else if (is_over)
        kill(*worker, "did not end; it is killed");
      else if (worker->stopped && seconds_since(*worker->stopped) > lapse)
        kill(*worker, fmt::format("was stopped for {:.0f} s; {}", lapse, start_again_text(*worker)));
    }
  }

  // What a worker that is gone means for the others.
  void reap(Worker& worker) {
    int status = 0;
    if (worker.process < 0 || ::waitpid(worker.process, &status, WNOHANG | WUNTRACED | WCONTINUED) != worker.process)
      return;
    if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
      worker.stopped = WIFSTOPPED(status) ? std::optional(Clock::now()) : std::nullopt;
      return;
    }
    const pid_t process = worker.process;
    worker.process = -1;
    worker.stopped.reset();
    listen(worker);  // what it said last
    worker.progress.reset();
    const bool was_silent = std::exchange(worker.was_silent, false);
    const auto is_killed_by = [&](int number) { return WIFSIGNALED(status) && WTERMSIG(status) == number; };
    if (WIFSIGNALED(status) && was_silent && !concluded_)
      start(worker);
    else if (std::ranges::any_of(stop_signals, is_killed_by))
      stop_all();  // it came before the worker could take it
    else if (WIFSIGNALED(status))
      was_killed(worker, process, WTERMSIG(status));
    else if (WEXITSTATUS(status) == static_cast<int>(Fault::interrupted))
      stop_all();
    else if (worker.has_failed)
      start(worker);
    else if (WEXITSTATUS(status) != 0 && !worker.says_what_failed)
      has_stopped(worker,
                  worker.ending.value_or(Error(fault_of(WEXITSTATUS(status)), fmt::format("{} ended", worker.name))));
    worker.run.clear();
  }

  void was_killed(Worker& worker, pid_t process, int number) {
    if (stops_ || concluded_) return;
    const std::string killed =
        fmt::format("{} (process {}) was killed by signal {} ({})", worker.name, process, number, ::strsignal(number));
    constexpr int most_deaths = 3;
    if (++(worker.run.empty() ? worker.idle_deaths : deaths_[worker.run]) < most_deaths) {
      console_.warn(fmt::format("{}; {}", killed, start_again_text(worker)));
      return start(worker);
    }
    const std::string again = fmt::format("{}, as were {} before", killed, most_deaths - 1);
    if (worker.run.empty() && !is_open_) fail_runtime("{}; {}", again, way_on());
    if (worker.run.empty()) return has_stopped(worker, Error(Fault::runtime, again));
    note_failure(worker.run, worker.label,
                 Error(Fault::runtime,
                       fmt::format("{}: {}; too little memory for so many at once is a common cause; use fewer --jobs",
                                   worker.label, again)));
    start(worker);
  }

  static std::string start_again_text(const Worker& worker) {
    return worker.run.empty() ? "it is started again" : worker.label + " is taken over";
  }

  // Without a run: it could not even begin to train.
  void has_stopped(const Worker& worker, const Error& error) {
    if (!is_open_) throw Error(error);
    if (!stops_) console_.warn(fmt::format("{} stopped, the others go on: {}", worker.name, error.what()));
    last_stop_ = error;
  }

  // Workers save and stop, also those that somebody stopped.
  void stop_all() {
    if (stops_) return;
    stops_ = true;
    console_.info("saving");
    for (const int number : {SIGTERM, SIGCONT}) signal_children(running(), number);
  }

  [[nodiscard]] std::string hint() const {
    std::string flag = fmt::format(" --jobs {}", workers_.size());
    if (job_.options.device != "cpu") {
      constexpr std::size_t before_number = std::string_view("cuda:").size();
      std::vector<std::string> numbers;
      for (const auto& worker : workers_) numbers.push_back(worker->device.substr(before_number));
      flag = fmt::format(" --devices {}", fmt::join(numbers, ","));
    }
    return resume_hint(study_command, job_.folder.out) + flag;
  }

  // What to type next. The folder may hold an older study, which --overwrite was to replace.
  [[nodiscard]] std::string way_on() const {
    const bool is_there = is_open_ || (!job_.folder.overwrite && is_run(job_.folder.out));
    return is_there ? hint() : "start it again";
  }

  // Another study may have the name of this one by now.
  void check_in_place() const {
    if (is_open_ && !is_named(lock_, job_.folder.out / lock_name)) fail_moved_away(job_.folder.out);
  }

  [[nodiscard]] bool result() const {
    check_in_place();
    if (concluded_) return true;
    if (stops_)
      throw Error(Fault::interrupted,
                  fmt::format("interrupted{}; {}", is_open_ ? ", state saved" : " before this command trained anything",
                              way_on()));
    if (!failed_.empty()) throw Error(fault_, fmt::format("{}; {}", failure_text(failed_, runs_), hint()));
    if (is_open_ && is_complete(job_.folder.out)) return false;  // another command concluded it
    if (last_stop_) throw Error(*last_stop_);
    fail_runtime("the workers ended before the study; {}", hint());
  }

  const WorkerJob& job_;
  Console& console_;
  std::size_t runs_;
  std::vector<std::unique_ptr<Worker>> workers_;
  FailedRuns failed_;
  Fault fault_ = Fault::runtime;
  std::map<std::string, int> deaths_;  // of workers that had a run, by that run
  std::set<std::string> printed_;      // what is said once, whichever workers say it
  std::optional<Error> last_stop_;
  std::optional<Clock::time_point> concluded_;  // when a worker had written the verdict
  bool has_started_ = false, is_open_ = false, stops_ = false;
  Descriptor lock_;  // of the study that was opened
  HeldSignals pausing_{{SIGTSTP}};
};

}  // namespace

bool train_side_by_side(const WorkerJob& job, const std::vector<std::string>& devices, Console& console) {
  const InterruptGuard guard;
  return WorkerPool(job, devices, console).work();
}

std::vector<int> parse_devices(const std::string& text) {
  std::vector<int> devices;
  if (text == "all") return devices;
  for (const std::string& one : comma_separated(text)) {
    std::int64_t number = 0;
    if (!parse_value(one, number) || number < 0 || number > 1000)
      fail_input("--devices {}: '{}' is no number of a GPU; expected all, or numbers such as 0,1,3", excerpt(text),
                 excerpt(one));
    if (std::ranges::find(devices, static_cast<int>(number)) != devices.end())
      fail_input("--devices {}: {} is there twice", text, number);
    devices.push_back(static_cast<int>(number));
  }
  return devices;
}

}  // namespace headscope
