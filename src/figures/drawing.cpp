// Drawing figures: all files are made in a hidden folder and renamed at the end.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>

#include "core/atomic_file.h"
#include "core/descriptor.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/parallel.h"
#include "figures/gnuplot.h"
#include "figures/render.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

// A hidden folder inside `parent` (so that it is on the same disk) that goes away with this object.
class DrawingFolder {
 public:
  explicit DrawingFolder(const fs::path& parent) {
    std::string name = (fs::absolute(parent) / ".drawing-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      fail_runtime("cannot draw into {}: {}", parent.string(), std::strerror(errno));
    path_ = name;
  }
  DrawingFolder(const DrawingFolder&) = delete;
  DrawingFolder& operator=(const DrawingFolder&) = delete;
  ~DrawingFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string file_of(const FigureScript& figure, const FigureData& data) {
  return data_file(figure.name, data.name, figure.data.size()).text();
}

std::vector<std::string> files_of(const FigureScript& figure) {
  std::vector<std::string> files = {figure.name + ".png", figure.name + ".svg", figure.name + ".gp"};
  for (const FigureData& data : figure.data) files.push_back(file_of(figure, data));
  return files;
}

// Draws figures[first], figures[first + stride], ... in one gnuplot process, whose start costs as much as a figure.
std::string draw_share(std::span<const FigureScript> figures, std::size_t first, std::size_t stride,
                       const fs::path& folder, const fs::path& drawing) {
  std::vector<std::string> scripts;
  for (std::size_t i = first; i < figures.size(); i += stride) scripts.push_back(figures[i].name + ".gp");
  const GnuplotRun run = run_gnuplot(scripts, drawing);
  if (run.ok) return run.warnings;
  // Ctrl-C reaches the child as well; then its end is no failure of the figure.
  if (interrupt_requested()) throw Error(Fault::interrupted, "interrupted while drawing figures");
  const fs::path figure = run.script.empty() ? folder : folder / fs::path(run.script).stem();
  fail_runtime("gnuplot could not draw {}: {}", figure.string(), run.message);
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
  const DrawingFolder drawing(folder);
  std::set<std::string> names;
  for (const FigureScript& figure : figures) {
    HEADSCOPE_CHECK(names.insert(figure.name).second, "two figures are named {}", figure.name);
    write_file(drawing.path() / (figure.name + ".gp"), figure.script.text());
    for (const FigureData& data : figure.data) write_file(drawing.path() / file_of(figure, data), to_dat(data.table));
    for (const std::string& file : files_of(figure)) drawn.files.push_back(folder / file);
  }

  // Below about four figures a process spends more on starting than on drawing.
  const std::size_t processes = std::clamp<std::size_t>(figures.size() / 4, 1, available_cores());
  std::vector<std::string> warnings(processes);
  parallel_for(processes, processes,
               [&](std::size_t i) { warnings[i] = draw_share(figures, i, processes, folder, drawing.path()); });
  for (const std::string& text : warnings) drawn.warnings += text;

  for (const fs::path& file : drawn.files)
    if (file.extension() == ".png" || file.extension() == ".svg") finish_image(drawing.path() / file.filename(), file);
  move_into_place(drawn.files, drawing.path(), folder);
  return drawn;
}

Drawn draw(std::span<const Figure> figures, const fs::path& folder, const Theme& theme) {
  std::vector<FigureScript> scripts;
  for (const Figure& figure : figures) scripts.push_back(render(figure, theme));
  return draw(scripts, folder);
}

}  // namespace headscope
