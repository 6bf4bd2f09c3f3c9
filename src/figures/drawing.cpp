// Drawing figures: gnuplot as a child process; all files are made in a hidden folder and renamed at the end.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>

#include "core/atomic_file.h"
#include "core/console.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/parallel.h"
#include "core/regular_file.h"
#include "core/text.h"
#include "figures/render.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

// The script that failed, empty when none is named, and gnuplot's first message about it. It repeats the command, puts
// a caret below it, and then says what is wrong: "NAME.gp" line 7: what is wrong (some versions put a comma behind the
// name).
std::pair<fs::path, std::string> failure_in(const std::string& printed) {
  std::string first;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.find_first_not_of(" \t^") == std::string::npos) continue;
    if (first.empty()) first = line;
    const std::size_t quote = line.find('"', 1), place = line.find(" line "), text = line.find(": ");
    if (line[0] == '"' && quote != std::string::npos && (place == quote + 1 || place == quote + 2) &&
        text != std::string::npos && line.compare(text + 2, 7, "warning") != 0)
      return {line.substr(1, quote - 1), line.substr(place + 1)};
  }
  return {"", first.empty() ? "it printed nothing" : first};
}

// An exit status of this and an errno says why gnuplot was not started. Shells use 128 and the number of a signal.
constexpr int not_started = 200;

// In the child, between fork and exec: only calls that are safe there. A parent that is killed takes the child along,
// which would otherwise go on writing into a folder that nobody has locked.
[[noreturn]] void become_gnuplot(char* const* arguments, const char* folder, const char* log, pid_t parent) {
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
  ::_exit(not_started + std::min(errno, 55));
}

[[noreturn]] void fail_to_start(int fault) {
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

// Runs `gnuplot -d script...` in `drawing`, where the scripts and their data are and the images go; returns what it
// printed. The user's own gnuplot start-up file is not read. `folder` is where the figures will be, for messages.
std::string run_gnuplot(std::vector<std::string> scripts, const fs::path& drawing, const fs::path& folder) {
  static std::atomic<unsigned> counter = 0;  // runs beside each other need a log each
  const fs::path log = fs::absolute(drawing) / fmt::format("gnuplot-{}.log", counter++);
  scripts.insert(scripts.begin(), {"gnuplot", "-d"});
  std::vector<char*> arguments;
  for (std::string& argument : scripts) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid(), child = ::fork();
  if (child == 0) become_gnuplot(arguments.data(), drawing.c_str(), log.c_str(), parent);
  if (child < 0) fail_to_start(errno);
  const int status = wait_for(child);
  // Ctrl-C reaches the child as well; then its end is no failure of the figure.
  if (status != 0 && interrupt_requested()) throw Error(Fault::interrupted, "interrupted while drawing figures");
  if (WIFEXITED(status) && WEXITSTATUS(status) > not_started) fail_to_start(WEXITSTATUS(status) - not_started);
  const std::string printed = read_file(log);
  if (status == 0) return printed;
  const auto [script, message] = WIFSIGNALED(status)
                                     ? std::pair(fs::path(), fmt::format("it was ended by signal {}", WTERMSIG(status)))
                                     : failure_in(printed);
  fail_runtime("gnuplot could not draw {}: {}", (script.empty() ? folder : folder / script.stem()).string(), message);
}

// An image without its script is somebody else's.
void refuse_foreign_image(const fs::path& figure) {
  const auto file = [&](const char* ending) { return fs::path(figure.string() + ending); };
  for (const char* ending : {".png", ".svg"})
    if (fs::exists(fs::symlink_status(file(ending))) && !fs::exists(fs::symlink_status(file(".gp"))))
      fail_input("{}: is there and was not drawn by headscope (it has no .gp beside it); choose another folder",
                 file(ending).string());
}

// A hidden folder inside `parent` (so that it is on the same disk) that goes away with this object.
struct DrawingFolder {
  fs::path path;
  explicit DrawingFolder(const fs::path& parent) {
    std::string name = (fs::absolute(parent) / ".drawing-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      fail_runtime("cannot draw into {}: {}", parent.string(), std::strerror(errno));
    path = name;
  }
  DrawingFolder(const DrawingFolder&) = delete;
  DrawingFolder& operator=(const DrawingFolder&) = delete;
  ~DrawingFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

std::string file_of(const FigureScript& figure, const FigureData& data) {
  return data_file(figure.name, data.name, figure.data.size()).text();
}

std::vector<std::string> files_of(const FigureScript& figure) {
  std::vector<std::string> files = {figure.name + ".png", figure.name + ".svg", figure.name + ".gp"};
  for (const FigureData& data : figure.data) files.push_back(file_of(figure, data));
  return files;
}

// gnuplot does not look whether its writing succeeds: on a full disk it leaves part of an image and says nothing.
bool is_whole(const fs::path& image) {
  std::error_code absent;
  if (!fs::exists(image, absent)) return false;
  std::string bytes = read_file(image);
  if (image.extension() == ".png") return bytes.ends_with("IEND\xae\x42\x60\x82");
  while (bytes.ends_with('\n')) bytes.pop_back();
  return bytes.ends_with("</svg>");
}

void finish_image(const fs::path& image, const fs::path& target) {
  if (!is_whole(image))
    fail_runtime("cannot write {}: gnuplot wrote only a part of it; is the disk full? Nothing was changed",
                 target.string());
  const Descriptor descriptor(::open(image.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.open() || ::fsync(descriptor.get()) != 0)
    fail_runtime("cannot write {}: {}; nothing was changed", target.string(), std::strerror(errno));
}

// A rename replaces a symbolic link and never follows it. What could make one fail is looked for before the first.
void move_into_place(const std::vector<fs::path>& targets, const fs::path& drawing, const fs::path& folder) {
  std::error_code fault;
  for (const fs::path& target : targets)
    if (fs::is_directory(fs::symlink_status(target, fault)))
      fail_runtime("cannot write {}: it is a folder; nothing was changed", target.string());
  for (const fs::path& target : targets) {
    fs::rename(drawing / target.filename(), target, fault);
    if (fault) fail_runtime("cannot write {}: {}", target.string(), fault.message());
  }
  sync_folder(folder);
}

}  // namespace

Drawn draw(std::span<const FigureScript> figures, const fs::path& folder) {
  Drawn drawn;
  if (figures.empty()) return drawn;
  make_folder(folder);
  const DrawingFolder hidden(folder);
  const fs::path& drawing = hidden.path;
  std::set<std::string> names;
  for (const FigureScript& figure : figures) refuse_foreign_image(folder / figure.name);
  for (const FigureScript& figure : figures) {
    HEADSCOPE_CHECK(names.insert(figure.name).second, "two figures are named {}", figure.name);
    write_file(drawing / (figure.name + ".gp"), figure.script.text());
    for (const FigureData& data : figure.data) write_file(drawing / file_of(figure, data), to_dat(data.table));
    for (const std::string& file : files_of(figure)) drawn.files.push_back(folder / file);
  }

  // The start of a process costs as much as a figure: below about four figures it is most of the time.
  const std::size_t processes = std::clamp<std::size_t>(figures.size() / 4, 1, available_cores());
  std::vector<std::string> warnings(processes);
  parallel_for(processes, processes, [&](std::size_t first) {
    std::vector<std::string> scripts;
    for (std::size_t i = first; i < figures.size(); i += processes) scripts.push_back(figures[i].name + ".gp");
    warnings[first] = run_gnuplot(std::move(scripts), drawing, folder);
  });
  for (const std::string& text : warnings) drawn.warnings += text;

  for (const fs::path& file : drawn.files)
    if (file.extension() == ".png" || file.extension() == ".svg") finish_image(drawing / file.filename(), file);
  move_into_place(drawn.files, drawing, folder);
  return drawn;
}

Drawn draw(std::vector<Figure> figures, const fs::path& folder, const Theme& theme) {
  std::vector<FigureScript> scripts;
  for (Figure& figure : figures) {
    figure = completed(std::move(figure));
    scripts.push_back(render(figure, theme));
  }
  return draw(scripts, folder);
}

bool are_drawn(const std::vector<Figure>& figures, const fs::path& folder) {
  return std::ranges::all_of(figures, [&](const Figure& figure) {
    return is_whole(folder / (figure.name + ".png")) && is_whole(folder / (figure.name + ".svg"));
  });
}

void draw_or_warn(const fs::path& run, const std::string& if_interrupted, Console& console,
                  const std::function<void()>& draw, const std::function<bool()>& is_ours) {
  console.info("drawing figures");
  try {
    draw();
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    if (ours != nullptr && ours->fault() == Fault::interrupted)
      throw Error(Fault::interrupted, fmt::format("{}; {}", error.what(), if_interrupted));
    if (is_ours())
      console.warn(fmt::format("{}; all else is there; draw with: {} plot {}", error.what(), called_as(),
                               shell_word(run.string())));
  }
}

}  // namespace headscope
