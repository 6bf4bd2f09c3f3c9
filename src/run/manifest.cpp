#include "run/manifest.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/regular_file.h"
#include "run/names.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string_view status_name(RunStatus status) {
  constexpr std::array<std::string_view, 5> names = {"running", "interrupted", "failed", "incomplete", "complete"};
  return names[static_cast<std::size_t>(status)];
}

namespace {

constexpr std::size_t most_manifest_bytes = 64U << 20;  // ours has some thousand

bool is_of_this_program(const ordered_json& manifest) {
  return manifest.is_object() && manifest.value("program", ordered_json()) == program_name;
}

}  // namespace

fs::path absolute_folder(const fs::path& folder) {
  const fs::path absolute = fs::absolute(folder / "");
  // What ".." behind a symbolic link means, only the file system knows.
  const bool goes_up = std::find(absolute.begin(), absolute.end(), "..") != absolute.end();
  return (goes_up ? fs::weakly_canonical(absolute) / "" : absolute).lexically_normal().parent_path();
}

ordered_json read_manifest(const fs::path& run) {
  const fs::path file = run / manifest_name;
  std::error_code error;
  if (!fs::exists(run, error)) fail_input("{}: is not there", run.string());
  if (!fs::exists(file, error))
    fail_input("{}: is not a run folder: it holds no {}{}", run.string(), manifest_name, runs_in(run));
  ordered_json manifest = parse_json(read_file(file, most_manifest_bytes));
  if (!is_of_this_program(manifest))
    fail_input("{}: is damaged or of another program: it does not say \"program\": \"{}\"; choose another folder",
               file.string(), program_name);
  for (const char* key : {"command", "status", "started"})
    if (!manifest.contains(key) || !manifest[key].is_string())
      fail_input("{}: is damaged: it has no text '{}'; choose another folder", file.string(), key);
  if (!manifest.contains("config") || !manifest["config"].is_object())
    fail_input("{}: is damaged: it has no object 'config'; choose another folder", file.string());
  return manifest;
}

void set_status_in_place(const fs::path& run, RunStatus status) {
  const fs::path name = run / manifest_name;
  const Descriptor file(::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.open()) return;
  const std::string text = read_file(name, most_manifest_bytes);
  const std::string key = "\"status\": ", before = text_at(parse_json(text), "status");
  const std::size_t at = text.find(key + '"' + before + '"');  // quotes inside a text are escaped
  std::string value = fmt::format("\"{}\"", status_name(status));
  if (at == std::string::npos || value.size() > before.size() + 2) return;
  value.insert(0, before.size() + 2 - value.size(), ' ');
  static_cast<void>(file.write_at(value, static_cast<off_t>(at + key.size())));
}

std::optional<std::int64_t> threads_in(const ordered_json& manifest) {
  if (!manifest.is_object() || !manifest.contains("threads") || !manifest["threads"].is_number_integer())
    return std::nullopt;
  return manifest["threads"].get<std::int64_t>();
}

std::string runs_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && is_run(entry.path())) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  constexpr std::size_t most = 3;
  const bool more = names.size() > most;
  names.resize(std::min(names.size(), most));
  return names.empty() ? "" : fmt::format(" (it holds runs: {}{})", fmt::join(names, ", "), more ? ", …" : "");
}

// "tiny" is in "train-tiny" and not in "destiny".
bool has_word(const std::string& text, const std::string& word) {
  const auto is_edge = [&](std::size_t at) {
    return at >= text.size() || std::isalnum(static_cast<unsigned char>(text[at])) == 0;
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    if (is_edge(at - 1) && is_edge(at + word.size())) return true;
  return false;
}

bool is_run(const fs::path& folder) {
  std::error_code error;
  for (const fs::path& file : {folder / manifest_name, folder / replaced_name / manifest_name})
    if (fs::is_regular_file(file, error) && is_of_this_program(parse_json(read_file(file, most_manifest_bytes))))
      return true;
  return false;
}

bool is_complete(const fs::path& run) {
  std::error_code error;
  if (!fs::exists(run / manifest_name, error)) return false;
  return read_manifest(run).value("status", "") == status_name(RunStatus::complete);
}

fs::path run_around(const fs::path& folder) {
  for (fs::path place = absolute_folder(folder);; place = place.parent_path()) {
    if (is_run(place)) return place;
    if (place == place.parent_path()) return {};
  }
}

std::string run_title(const fs::path& folder, const std::string& of) {
  const fs::path place = absolute_folder(folder), around = run_around(place);
  const std::string name = around.empty() ? place.filename() : place.lexically_relative(around.parent_path());
  return of.empty() || has_word(name, of) ? name : fmt::format("{} ({})", name, of);
}

}  // namespace headscope
