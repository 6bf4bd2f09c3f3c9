#include "heads/training_log.h"

#include <algorithm>
#include <cmath>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_text.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::size_t most_progress = 1 << 16;   // bytes; ours has some hundred
constexpr std::size_t most_events = 256U << 20;  // bytes: more than a million events
constexpr auto progress_interval = std::chrono::seconds(1);

ordered_json json_of(const TrainingProgress& progress) {
  return {{"time", progress.time},
          {"phase", progress.phase},
          {"step", progress.moment.step},
          {"steps", progress.steps},
          {"tokens", progress.moment.tokens},
          {"loss", progress.loss},
          {"tokens_per_s", progress.tokens_per_s},
          {"seconds_left", progress.seconds_left}};
}

void write_progress(const fs::path& file, const TrainingProgress& progress) {
  try {
    replace_file(file, json_text(json_of(progress)));
  } catch (const Error&) {  // the next one may succeed; see training_log.h
  }
}

// What stands under a key; null where nothing does.
ordered_json value_at(const ordered_json& object, const char* key) {
  return object.is_object() ? object.value(key, ordered_json()) : ordered_json();
}

// A number of steps or tokens. Nothing for any that no run has.
std::optional<std::int64_t> count_at(const ordered_json& object, const char* key) {
  const ordered_json value = value_at(object, key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > std::uint64_t{most_steps_or_tokens})
    return std::nullopt;
  return value.get<std::int64_t>();
}

bool has_texts(const ordered_json& object, std::initializer_list<const char*> keys) {
  return std::ranges::all_of(keys, [&](const char* key) { return value_at(object, key).is_string(); });
}

std::optional<TrainingEvent> event_in(std::string_view line) {
  const ordered_json object = parse_json(line);
  const auto step = count_at(object, "step"), tokens = count_at(object, "tokens");
  if (!step || !tokens || !has_texts(object, {"time", "kind", "text"})) return std::nullopt;
  return TrainingEvent{text_at(object, "time"), {*step, *tokens}, text_at(object, "kind"), text_at(object, "text")};
}

std::string line_of(const TrainingEvent& event) {
  return json_line({{"time", event.time},
                    {"step", event.moment.step},
                    {"tokens", event.moment.tokens},
                    {"kind", event.kind},
                    {"text", event.text}}) +
         "\n";
}

// A line counts when its end is there.
std::vector<TrainingEvent> events_in(std::string_view text, std::size_t* left_out = nullptr) {
  std::vector<TrainingEvent> events;
  for (std::size_t end = 0; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    if (auto event = event_in(text.substr(0, end)))
      events.push_back(std::move(*event));
    else if (left_out != nullptr)
      ++*left_out;
  return events;
}

// Happens again when training goes on from an earlier step.
bool is_of_the_course(const TrainingEvent& event) {
  return event.kind == "checkpoint" || event.kind == "probe" || event.kind == "spike";
}

}  // namespace

std::optional<TrainingProgress> read_progress(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / progress_name, ignored)) return std::nullopt;
  ordered_json object;
  try {
    object = parse_json(read_file(folder / progress_name, most_progress));
  } catch (const Error&) {  // no file, or far too long
    return std::nullopt;
  }
  const auto step = count_at(object, "step"), tokens = count_at(object, "tokens"), steps = count_at(object, "steps");
  if (!step || !tokens || !steps || !has_texts(object, {"time", "phase"})) return std::nullopt;
  const auto number = [&](const char* key) {
    const ordered_json value = value_at(object, key);
    return value.is_number() ? value.get<double>() : missing;
  };
  return TrainingProgress{text_at(object, "time"), text_at(object, "phase"), {*step, *tokens},      *steps,
                          number("loss"),          number("tokens_per_s"),   number("seconds_left")};
}

void set_phase(const fs::path& folder, std::string_view phase) {
  std::optional<TrainingProgress> progress = read_progress(folder);
  if (!progress) return;
  progress->phase = phase;
  progress->time = utc_now();
  if (phase == phase::done) progress->seconds_left = 0;
  write_progress(folder / progress_name, *progress);
}

ProgressFile::ProgressFile(const fs::path& folder, const Moment& now, double loss, std::int64_t steps,
                           std::function<void()> before_writing)
    : file_(folder / progress_name), before_writing_(std::move(before_writing)), first_step_(now.step) {
  now_.moment = now;
  now_.loss = loss;
  now_.steps = steps;
}

void ProgressFile::add(const Moment& after, double loss, double tokens, double seconds) {
  now_.moment = after;
  now_.loss = loss;
  tokens_ += tokens;
  seconds_ += seconds;
  if (Clock::now() - written_ >= progress_interval) write();
}

void ProgressFile::enter(std::string_view phase) {
  if (now_.phase == phase) return;
  now_.phase = phase;
  write();
}

// The time left is that of whole updates so far, with the probes and checkpoints between them.
void ProgressFile::write() {
  before_writing_();
  if (seconds_ > 0) now_.tokens_per_s = tokens_ / seconds_;
  const auto made = static_cast<double>(now_.moment.step - first_step_);
  if (made > 0) now_.seconds_left = seconds_since(started_) / made * static_cast<double>(now_.steps - now_.moment.step);
  now_.time = utc_now();
  write_progress(file_, now_);
  written_ = Clock::now();
  tokens_ = seconds_ = 0;
}

std::vector<TrainingEvent> read_events(const fs::path& folder, std::size_t* left_out) {
  std::error_code ignored;
  if (!fs::exists(folder / events_name, ignored)) return {};
  return events_in(read_file(folder / events_name, most_events), left_out);
}

EventLog::EventLog(const fs::path& folder, std::optional<std::int64_t> checkpoint_step) {
  const fs::path file = folder / events_name;
  RegularFile opened = open_or_create(file);
  if (!opened.descriptor.open()) return;  // nothing is appended
  const std::string text = opened.size > 0 ? read_file(file, most_events) : "";
  before_ = events_in(text);
  std::erase_if(before_, [&](const TrainingEvent& event) {
    return is_of_the_course(event) && (!checkpoint_step || event.moment.step > *checkpoint_step);
  });
  std::string kept;
  for (const TrainingEvent& event : before_) kept += line_of(event);
  if (kept != text) {  // replaced as a whole: a kill leaves the old lines or the new
    write_file(file, kept);
    opened = open_or_create(file);
  }
  descriptor_ = std::move(opened.descriptor);
  end_ = static_cast<std::int64_t>(kept.size());
}

std::optional<std::int64_t> EventLog::last_step(std::string_view kind) const {
  std::optional<std::int64_t> step;
  for (const TrainingEvent& event : before_)
    if (event.kind == kind) step = event.moment.step;
  return step;
}

void EventLog::append(std::string_view kind, const Moment& moment, std::string_view text) {
  if (!descriptor_.open()) return;
  const std::string line = line_of({utc_now(), moment, std::string(kind), std::string(text)});
  if (descriptor_.write_at(line, end_)) {
    end_ += static_cast<std::int64_t>(line.size());
    return;
  }
  // The disk is full. If this fails, too: a torn line is recognised when it is read.
  [[maybe_unused]] const int cut = ::ftruncate(descriptor_.get(), end_);
}

}  // namespace headscope
