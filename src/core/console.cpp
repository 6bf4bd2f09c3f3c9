#include "core/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <span>

#include "core/error.h"
#include "core/text.h"

namespace headscope {
namespace {

constexpr std::string_view clear_line = "\r\x1b[K";

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
constexpr std::size_t most_cells = 30, cells_per_step = 5;
constexpr std::size_t kept_free = 2;  // columns: the terminal writes ^C behind the last bar

// At most so many characters of it.
std::string_view shortened(std::string_view text, std::size_t width) {
  for (std::size_t i = 0, characters = 0; i < text.size(); ++i)
    if ((characters += width_of(text.substr(i, 1))) > width) return text.substr(0, i);
  return text;
}

}  // namespace

std::optional<TerminalSize> terminal_size(std::FILE* stream) {
  winsize size{};
  const int file = ::fileno(stream);
  if (::isatty(file) != 1 || ::ioctl(file, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return TerminalSize{size.ws_col, size.ws_row > 0 ? size.ws_row : unlimited};
}

std::string called_as() {
  const char* name = std::getenv("HEADSCOPE_CALLED_AS");
  return name != nullptr ? shell_word(name) : "headscope";
}

Console::Console(ConsoleOptions options, std::FILE* stream)
    : options_(options), stream_(stream), terminal_(::isatty(::fileno(stream)) == 1) {}

void Console::info(std::string_view message) {
  if (!options_.quiet) print("", on_one_line(std::string(message)));
}

void Console::detail(std::string_view message) {
  if (options_.verbose) print("", on_one_line(std::string(message)));
}

void Console::warn(std::string_view message) {
  print("warning: ", on_one_line(std::string(message)));
}

void Console::error(std::string_view message) {
  print("", on_one_line(std::string(message)));
}

void Console::print(std::string_view prefix, std::string_view message) {
  const std::scoped_lock lock(mutex_);
  draw(fmt::format("headscope: {}{}\n", prefix, message));
}

// All bars have one length: the longest at which every line is whole. It does not grow again on a terminal of this
// width, or it would change with the digits of a number.
void Console::fit_bars(const std::vector<const Progress*>& shown, std::size_t width) {
  if (width != fitted_width_) {
    cells_ = most_cells;
    brief_ = false;
  }
  fitted_width_ = width;
  const auto is_whole = [&](const Progress* progress) { return width_of(progress->bar()) <= width; };
  while (cells_ > 0 && !std::ranges::all_of(shown, is_whole)) cells_ -= cells_per_step;
  brief_ = brief_ || !std::ranges::all_of(shown, is_whole);
}

// Bars are drawn again where they are: the cursor goes up to the first of them. A line that is too long for the
// terminal would take two, so it is cut.
void Console::draw(std::string_view above, const Progress* ended) {
  now_ = Clock::now();
  std::string text;
  if (drawn_ == 1) text += clear_line;
  if (drawn_ > 1) text += fmt::format("\r\x1b[{}A\x1b[J", drawn_ - 1);
  text += above;
  const std::optional<TerminalSize> terminal = terminal_size(stream_);
  const std::size_t width = terminal ? std::max(terminal->columns, kept_free + 1) - kept_free : unlimited,
                    height = terminal ? terminal->lines : unlimited;
  drawn_ = std::min(bars_.size(), height);  // the cursor cannot go up to a line that left the terminal
  const std::size_t hidden = bars_.size() - drawn_ + (drawn_ < bars_.size() ? 1 : 0);
  std::vector<const Progress*> shown(bars_.begin(), bars_.end() - static_cast<std::ptrdiff_t>(hidden));
  if (ended != nullptr) shown.push_back(ended);
  fit_bars(shown, width);
  if (ended != nullptr) {
    text.append(shortened(ended->bar(), width)).append("\n");
    shown.pop_back();
  }
  std::vector<std::string> lines;
  for (const Progress* progress : shown) lines.push_back(progress->bar());
  if (hidden > 0) lines.push_back(fmt::format("and {} more", hidden));
  for (std::size_t i = 0; i < lines.size(); ++i) text.append(i == 0 ? "" : "\n").append(shortened(lines[i], width));
  write(text);
}

void Console::write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream_);
  std::fflush(stream_);
}

Progress::Progress(Console& console, std::string label, std::string unit, std::size_t total, std::size_t done)
    : console_(console),
      label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      done_(done),
      done_at_start_(done),
      start_(Clock::now()),
      shown_(start_) {
  const std::scoped_lock lock(console_.mutex_);
  if (!console_.terminal_ || console_.options_.quiet) return;
  console_.bars_.push_back(this);
  console_.longest_label_ = std::max(console_.longest_label_, width_of(label_));
  show();
}

Progress::~Progress() {
  try {
    const std::scoped_lock lock(console_.mutex_);
    has_ended_ = true;
    show();
  } catch (const std::exception&) {  // a progress line is not worth ending the program
  }
}

void Progress::step(std::string note) {
  const std::scoped_lock lock(console_.mutex_);
  advance(done_ + 1, std::move(note));
}

void Progress::reach(std::size_t done, std::string note) {
  const std::scoped_lock lock(console_.mutex_);
  advance(done, std::move(note));
}

void Progress::advance(std::size_t done, std::string note) {
  note_ = std::move(note);
  done_ = done;
  const auto interval = console_.terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(5000);
  if (done_ < total_ && Clock::now() - shown_ >= interval) show();  // the destructor shows the last line
}

// "3/9 steps, 1.5 steps/s, 4.0 s left, loss 2.3"; on a narrow terminal "3/9, 1.5/s, 4.0 s left, loss 2.3".
std::string Progress::line() const {
  const double elapsed = std::chrono::duration<double>(console_.now_ - start_).count();
  const double rate = static_cast<double>(done_ - done_at_start_) / std::max(elapsed, 1e-9);
  const std::string unit = console_.brief_ ? "" : " " + unit_;
  std::string text = fmt::format("{}/{}{}", done_, total_, unit);
  if (rate > 0) text += fmt::format(", {:.3g}{}/s", rate, unit);
  if (rate > 0 && done_ < total_ && !has_ended_)
    text += fmt::format(", {} left", format_duration(static_cast<double>(total_ - done_) / rate));
  if (!note_.empty()) text += ", " + note_;
  if (done_ == total_) text += fmt::format(", {}", format_duration(elapsed));
  return text;
}

// Bars begin in one column, also those of labels that came earlier; but a label that takes a third of the terminal does
// not move the others.
std::string Progress::bar() const {
  const std::size_t cells = console_.cells_, column = std::min(console_.longest_label_, console_.fitted_width_ / 3);
  const std::size_t filled = total_ == 0 ? cells : cells * done_ / total_;
  std::string bar;
  for (std::size_t i = 0; i < cells; ++i) bar += i < filled ? "█" : "░";
  if (cells > 0) bar += ' ';
  return fmt::format("{:<{}} {}{}", label_, column, bar, line());
}

void Progress::show() {
  if (console_.options_.quiet) return;
  console_.now_ = shown_ = Clock::now();
  // A run too short for a second line gets only its last one.
  if (!console_.terminal_) return console_.write(fmt::format("headscope: {}: {}\n", label_, line()));
  if (has_ended_) std::erase(console_.bars_, this);
  console_.draw("", has_ended_ ? this : nullptr);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string format_duration(double seconds) {
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  if (!(seconds < 3.6e9)) return fmt::format("{:.1e} h", seconds / 3600);  // too long to count minutes
  const auto whole = static_cast<long>(std::lround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace headscope
