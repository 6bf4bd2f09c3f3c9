// Messages and one progress display on standard error, with a line for each work that goes on. A stream that is closed
// or full is ignored: the run goes on. Beside them the clock, and how a duration is written.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

// The clock that durations are measured with.
using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The time of day, UTC: "2026-11-18T12:00:00Z".
std::string utc_now();

// "1.3 s", "4 min 10 s", "2 h 05 min".
std::string format_duration(double seconds);

struct ConsoleOptions {
  bool quiet = false;    // only errors and warnings
  bool verbose = false;  // details too
};

class Progress;

class Console {
 public:
  explicit Console(ConsoleOptions options = {}, std::FILE* stream = stderr);

  void info(std::string_view message);    // hidden by quiet
  void detail(std::string_view message);  // shown by verbose
  void warn(std::string_view message);
  void error(std::string_view message);  // always one line

 private:
  friend class Progress;
  void print(std::string_view prefix, std::string_view message);
  void write(std::string_view text);  // the only function that writes to the stream

  ConsoleOptions options_;
  std::FILE* stream_;
  bool terminal_;
  // The bars, and before them what stays: text, and the last line of a bar that ended.
  void draw(std::string_view above, const Progress* ended = nullptr);
  void fit_bars(const std::vector<const Progress*>& shown, std::size_t width);
  std::mutex mutex_;
  std::vector<const Progress*> bars_;  // on the terminal's last lines, in the order in which they began
  std::size_t drawn_ = 0;              // lines of them that are there
  std::size_t longest_label_ = 0;      // in characters, of all bars so far
  std::size_t cells_ = 0;              // of each bar
  bool brief_ = false;                 // the lines have no units
  std::size_t fitted_width_ = 0;       // of the terminal, that cells_ is for
  Clock::time_point now_;              // of the drawing: all its lines are fitted and written with the same numbers
};

// Of the terminal that the stream leads to; nothing where it is none, or does not say.
struct TerminalSize {
  std::size_t columns, lines;
};
std::optional<TerminalSize> terminal_size(std::FILE* stream);

// The word that starts this program where the user types it: "headscope", or "./headscope" (HEADSCOPE_CALLED_AS).
std::string called_as();

// Counts finished steps: a bar with rate and time left on a terminal, a plain line every few seconds elsewhere.
class Progress {
 public:
  // `done` of `total` steps were finished before (a resumed run); they do not count in the rate.
  Progress(Console& console, std::string label, std::string unit, std::size_t total, std::size_t done = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // From any thread. The note is shown behind the counts: "loss 2.31".
  void step(std::string note = {});
  void reach(std::size_t done, std::string note = {});

 private:
  friend class Console;
  void advance(std::size_t done, std::string note);
  [[nodiscard]] std::string line() const;
  [[nodiscard]] std::string bar() const;
  void show();

  Console& console_;
  std::string label_, unit_, note_;
  std::size_t total_, done_, done_at_start_;
  Clock::time_point start_, shown_;
  bool has_ended_ = false;
};

}  // namespace headscope
