#include "run/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/console.h"
#include "core/json_text.h"
#include "core/text.h"
#include "run/names.h"
#include "run/replacement.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Keys whose values differ, "key (was 1, now 2)".
std::vector<std::string> differences(const ordered_json& before, const ordered_json& now,
                                     const std::vector<std::string>& free_keys) {
  std::vector<std::string> found;
  const ordered_json flat_before = before.flatten(), flat_now = now.flatten();
  const auto compare = [&](const std::string& pointer, const ordered_json& old_value, const ordered_json& new_value) {
    std::string key = pointer.substr(std::min<std::size_t>(1, pointer.size()));  // an empty object has an empty pointer
    std::replace(key.begin(), key.end(), '/', '.');
    if (std::find(free_keys.begin(), free_keys.end(), key) != free_keys.end()) return;
    if (json_line(old_value) != json_line(new_value))
      found.push_back(fmt::format("{} (was {}, now {})", key, json_line(old_value), json_line(new_value)));
  };
  for (const auto& [pointer, value] : flat_now.items())
    compare(pointer, flat_before.value(pointer, ordered_json()), value);
  for (const auto& [pointer, value] : flat_before.items())
    if (!flat_now.contains(pointer)) compare(pointer, value, ordered_json());
  return found;
}

// The names of a run, and of what replaces it or was replaced. A damaged manifest adds none.
RunNames names_in(const fs::path& run) {
  RunNames names;
  std::error_code error;
  for (const char* folder : {"", writing_name, publishing_name, replaced_name})
    if (const fs::path file = run / folder / manifest_name; fs::is_regular_file(fs::symlink_status(file, error)))
      names.add_chosen(parse_json(read_file(file, most_text_bytes)));
  return names;
}

// The manifest of the run in the folder; null where a kill left it in .replaced. Nothing where the folder is free: it
// is not there, is empty, or holds what a kill left of a run that had not begun. Any other folder is refused.
std::optional<ordered_json> manifest_in(const fs::path& out) {
  std::error_code error;
  const fs::file_status status = fs::status(out, error);
  if (status.type() == fs::file_type::not_found) return std::nullopt;
  if (status.type() == fs::file_type::none) fail_input("--out {}: {}", out.string(), error.message());
  if (!fs::is_directory(status)) fail_input("--out {}: is a file; expected a folder", out.string());
  const auto listing = fs::directory_iterator(out, error);
  if (error) fail_input("--out {}: cannot be read: {}", out.string(), error.message());
  if (fs::exists(fs::symlink_status(out / manifest_name, error))) return read_manifest(out);
  if (is_run(out)) return ordered_json();
  const RunNames names;
  for (const auto& entry : listing) {
    const fs::path name = entry.path().filename();
    const bool is_folder = fs::is_directory(entry.symlink_status());
    if (name == lock_name || name == claim_name ||
        (names.is_leftover(name, is_folder) && !(is_folder && foreign_entry(out, names, name))))
      continue;
    fail_input("--out {}: holds {} but no {}, so it is not a run folder; choose another folder", out.string(),
               name.string(), manifest_name);
  }
  return std::nullopt;
}

bool is_locked(const fs::path& run) {
  const Descriptor lock(::open((run / lock_name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!lock.open()) return false;
  const auto is_refused = [&](int kind) { return ::flock(lock.get(), kind | LOCK_NB) != 0 && errno == EWOULDBLOCK; };
  return is_refused(LOCK_EX) || is_refused(LOCK_SH);  // NFS gives the first for writing only
}

}  // namespace

// A run may lie inside another one, but neither among its files nor while it is written.
void refuse_part_of_a_run(const fs::path& out) {
  const fs::path place = absolute_folder(out);
  const fs::path around = run_around(place.parent_path());
  if (around.empty()) return;
  if (RunNames().is_ours(place.lexically_relative(around), /*is_folder=*/true))
    fail_input("--out {}: is a part of the run {}; choose another folder", out.string(), around.string());
  if (is_locked(around))
    fail_input("--out {}: lies in {}, which another process is writing; choose another folder", out.string(),
               around.string());
}

namespace {

// "; process 17 on node3 trains it: --resume joins", where the run is a shared one and a training of it goes on now.
std::string joining_text(const fs::path& run) {
  try {
    for (const fs::path& claim : claims_in(run))
      if (const auto owner = owner_of(claim); owner && claim.parent_path() != run && is_claimed(claim))
        return fmt::format("; {} trains it: --resume joins", owner_text(*owner));
  } catch (const Error&) {  // whoever may not look there cannot join
  }
  return "";
}

// The same, for a command that continues or replaces what is there: refuses a run of another command, and any run when
// neither is asked for.
std::optional<ordered_json> usable_manifest_in(const RunFolderOptions& options, const std::string& command,
                                               RunWrites writes) {
  std::optional<ordered_json> manifest = manifest_in(options.out);
  if (!manifest || manifest->is_null()) return manifest;
  const std::string out = options.out.string();
  if ((*manifest)["command"] != command)
    fail_input("--out {}: is a run of '{}', not of '{}'; choose another folder", out, text_at(*manifest, "command"),
               command);
  if (options.overwrite || options.resume || options.join) return manifest;
  if ((*manifest)["status"] == status_name(RunStatus::complete))
    fail_input("--out {}: exists and is complete; replace it with --overwrite, or choose another folder", out);
  if (const std::string joining = joining_text(options.out); !joining.empty())
    fail_input("--out {}: exists; go on with --resume, or choose another folder{}", out, joining);
  fail_input("--out {}: exists; {}replace it with --overwrite, or choose another folder", out,
             writes == RunWrites::as_it_goes ? "go on with --resume, " : "");
}

// What is read must not go away when the run is replaced.
void check_inputs(const fs::path& out, const std::vector<fs::path>& inputs) {
  const fs::path run = fs::weakly_canonical(out);
  for (const fs::path& input : inputs) {
    const fs::path given = fs::weakly_canonical(input);
    if (std::mismatch(run.begin(), run.end(), given.begin(), given.end()).first == run.end())
      fail_input("--overwrite {}: holds {}, which is to be read; choose another folder", out.string(), input.string());
  }
}

}  // namespace

void check_out(const RunFolderOptions& options, const std::string& command, RunWrites writes) {
  if (options.overwrite && options.resume) fail_input("--overwrite and --resume exclude each other");
  refuse_part_of_a_run(options.out);
  usable_manifest_in(options, command, writes);
}

std::optional<ordered_json> manifest_to_resume(const RunFolderOptions& options, const std::string& command,
                                               RunWrites writes) {
  if (!options.resume) return std::nullopt;
  if (options.out.empty()) fail_input("--resume needs the folder: name it with --out");
  check_out(options, command, writes);
  std::optional<ordered_json> manifest = manifest_in(options.out);
  if (manifest && manifest->is_null()) manifest = read_manifest(options.out / replaced_name);
  return manifest;
}

void fail_moved_away(const fs::path& run) {
  fail_runtime("{}: the run was moved away while it was written; nothing more is written here", run.string());
}

std::string resume_hint(const std::string& command, const fs::path& out) {
  return fmt::format("go on with: {} {} --resume --out {}", called_as(), command, shell_word(out.string()));
}

RunFolder::RunFolder(fs::path root, fs::path path, RunDescription description)
    : root_(std::move(root)),
      path_(std::move(path)),
      place_(path_),
      description_(std::move(description)),
      started_(utc_now()) {}

RunFolder::RunFolder(const RunFolderOptions& options, RunDescription description)
    : RunFolder(options.out, options.out, std::move(description)) {
  command_line_ = options.command_line;
  check_out(options, description_.command, description_.writes);
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) fail_input("--out {}: cannot be made: {}", path_.string(), error.message());
  if (description_.shared) {
    open_shared(options);
    return;
  }
  take_lock();
  // Once more under the lock: another process may have made a run here meanwhile.
  if (const auto manifest = usable_manifest_in(options, description_.command, description_.writes))
    open_existing(options, *manifest);
  if (!already_complete_) live([&] { begin(); });
}

RunFolder RunFolder::add_to(const fs::path& place) {
  const fs::path root = run_around(place);
  if (root.empty()) read_manifest(place);  // throws, and says why
  RunFolder run(root, place, {});
  run.take_lock();
  run.keeps_status_ = true;
  const fs::path inside = absolute_folder(place).lexically_relative(root);
  run.write_below(inside == "." ? fs::path() : inside);
  return run;
}

namespace {

[[noreturn]] void refuse_second_writer(const fs::path& run, const std::string& joining = "") {
  fail_input("{}: another process is writing it; wait for it or choose another folder{}", run.string(), joining);
}

// False where another process has a lock that excludes it. `must`: a file system without locks is refused.
bool lock_file(const Descriptor& file, int kind, const fs::path& run, bool must) {
  if (::flock(file.get(), kind | LOCK_NB) == 0) return true;
  if (errno == EWOULDBLOCK) return false;
  if (!must && (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP)) return true;  // claims do without it
  fail_input("{}: cannot be locked: {}", run.string(), std::strerror(errno));
}

}  // namespace

void RunFolder::open_lock() {
  lock_ = open_or_create(root_ / lock_name).descriptor;
  if (!lock_.open()) fail_input("{}: cannot be written: {}: {}", root_.string(), lock_name, std::strerror(errno));
}

// Locks the folder and puts in order what a killed process left.
void RunFolder::take_lock() {
  open_lock();
  if (!lock_file(lock_, LOCK_EX, root_, /*must=*/true) || others_at_work()) refuse_second_writer(root_);
  put_in_order();
}

// Takes the lock alone, and returns true, or shares it. Another process may have it alone while it opens the run, which
// is short, or another command may.
bool RunFolder::share_lock() {
  constexpr double patience = 30;  // seconds; a process that opens the run makes a claim in less, also on a slow disk
  for (Waiting waiting = this->waiting("");; waiting.again()) {
    if (lock_file(lock_, LOCK_EX, root_, /*must=*/false)) return true;
    if (lock_file(lock_, LOCK_SH, root_, /*must=*/false)) return false;
    if (waiting.seconds() > patience && waiting.looks_at_ages() && !is_claimed(root_ / claim_name)) refuse_silent_one();
  }
}

// It has the lock, which cannot be taken over, and no claim that is renewed.
void RunFolder::refuse_silent_one() const {
  if (const auto owner = owner_of(root_ / claim_name))
    fail_runtime(
        "{}: {}, which opens or ends it, keeps it locked and was not heard of for {:.0f} s; end that process, "
        "then go on with --resume",
        root_.string(), owner_text(*owner), ClaimTimes().lapse);
  refuse_second_writer(root_);
}

// Takes the shared lock in place of the one that this process has alone. flock(2) gives that up first, so another
// process may get it alone in between: a command that sees the claim of this process and ends, or one that opens the
// run and lets go (open_shared).
void RunFolder::share_lock_again() {
  constexpr double patience = 30;  // seconds
  for (Waiting waiting = this->waiting(""); !lock_file(lock_, LOCK_SH, root_, /*must=*/false); waiting.again())
    if (waiting.seconds() > patience)
      fail_input("{}: another process locked it while it was opened, and keeps the lock; try again with --resume",
                 root_.string());
}

// A process of a shared run has a lock that it shares, so that no other command writes there. Where locks do not reach
// over machines, claims do: whoever opens or ends the run has that of the run, whoever trains that of the training.
void RunFolder::open_shared(const RunFolderOptions& options) {
  open_lock();
  bool is_alone = share_lock();
  // Whoever has the claim may need the shared lock, so nobody keeps the lock alone while he waits for the claim.
  if (is_alone) held_ = Claim::take(root_ / claim_name);
  if (!held_) {
    if (is_alone) share_lock_again();
    hold();
    is_alone = share_lock();
  }
  is_alone = is_alone && !others_at_work();
  if (is_alone) put_in_order();
  const auto manifest = usable_manifest_in(options, description_.command, description_.writes);
  if (manifest && !is_alone && options.overwrite) refuse_second_writer(root_, joining_text(root_));
  if (manifest) open_existing(options, *manifest);
  try {
    if (!already_complete_ && (is_alone || !manifest)) live([&] { begin(); });
  } catch (const ClaimLost& lost) {
    fail_runtime("{}; this process was silent for too long; {}", lost.what(), resume_hint(description_.command, root_));
  }
  live([&] { share_lock_again(); });
  held_.reset();
}

Waiting RunFolder::waiting(const std::string& until) const {
  return {root_, description_.say, until, resume_hint(description_.command, root_)};
}

Claim RunFolder::wait_for_claim() const {
  const std::string until =
      fmt::format("; goes on without it when nothing was heard of it for {:.0f} s", ClaimTimes().lapse);
  for (Waiting waiting = this->waiting(until);; waiting.again())
    if (auto claim = Claim::take(root_ / claim_name, {}, waiting.looks_at_ages())) return std::move(*claim);
}

void RunFolder::hold() {
  check_in_place();
  held_.reset();
  held_.emplace(wait_for_claim());
}

void RunFolder::note_running() {
  const auto is_said = [&] { return read_manifest(root_).at("status") == status_name(RunStatus::running); };
  if (is_said()) return;
  const Claim held = wait_for_claim();
  if (!is_said()) write_manifest(root_, RunStatus::running, ordered_json::object());
}

// There is a claim that is not this object's and has not lapsed.
bool RunFolder::others_at_work() const {
  return std::ranges::any_of(claims_in(root_), [&](const fs::path& claim) {
    return !(held_ && claim == root_ / claim_name) && is_claimed(claim);
  });
}

void RunFolder::put_in_order() {
  const RunNames names = names_in(root_);
  if (const auto link = linked_entry(root_, names))
    fail_input("{}: is a symbolic link; a run is written inside its own folder only: put the file itself there",
               link->string());
  if (const auto foreign = foreign_entry_of_the_life(root_, names))
    fail_input("{}: is not of the run, yet lies where a run is written; move it elsewhere", foreign->string());
  if (!others_at_work()) clear(names);
  repair(root_, names);
}

// Removes what processes left that are gone: their claims, and half-written files.
void RunFolder::clear(const RunNames& names) const {
  for (const fs::path& claim : claims_in(root_))
    if (!(held_ && claim == root_ / claim_name)) remove_lapsed(claim);
  headscope::remove_leftovers(root_, names);
}

void RunFolder::remove_leftovers(const fs::path& training) const {
  headscope::remove_leftovers(root_, names_in(root_), training);
}

// What is there is a run: goes on with it or prepares to replace it.
void RunFolder::open_existing(const RunFolderOptions& options, const ordered_json& manifest) {
  if (options.overwrite) {
    check_inputs(path_, description_.inputs);
    if (const auto foreign = foreign_entry(root_, names_in(root_)))
      fail_input("--overwrite {}: {} is not of the run; move it, or choose another folder", path_.string(),
                 foreign->lexically_relative(root_).string());
    replaces_ = keeps_status_ = true;
    return;
  }
  ordered_json before = manifest.at("config");
  if (description_.in_current_words) before = description_.in_current_words(before);
  const auto changed = differences(before, description_.config, description_.free_keys);
  if (!changed.empty() && options.resume)
    fail_input("--resume {}: the configuration changed: {}; leave that out to go on", path_.string(),
               fmt::join(changed, ", "));
  if (!changed.empty())
    fail_input(
        "--out {}: is a run of another configuration: {}; say the same as the command that began it, or choose another "
        "folder",
        path_.string(), fmt::join(changed, ", "));
  before_ = manifest;
  already_complete_ = manifest.at("status") == status_name(RunStatus::complete);
  started_ = manifest.at("started");
  replaces_ = description_.writes == RunWrites::at_the_end;
}

void RunFolder::begin() {
  if (description_.writes == RunWrites::at_the_end) {
    write_below({});
    write(config_name, yaml_of(description_.config));
    if (!keeps_status_) write_manifest(root_, RunStatus::running, ordered_json::object());
    return;
  }
  if (replaces_) put_aside();
  write_manifest(root_, RunStatus::running, ordered_json::object());
  write(config_name, yaml_of(description_.config));
}

void RunFolder::put_aside() {
  const RunNames names = names_in(root_);
  try {
    set_aside(root_, names);
  } catch (...) {
    put_back(root_, names);
    throw;
  }
  aside_ = true;
}

void RunFolder::write_below(const fs::path& inside) {
  const fs::path writing = root_ / writing_name;
  place_ = inside.empty() ? writing : writing / inside;
  make_folder(place_);
}

fs::path RunFolder::final_name(const fs::path& file) const {
  return path_ / file.lexically_relative(place_);
}

bool RunFolder::is_in_place() const {
  return is_named(lock_, root_ / lock_name);
}

void RunFolder::check_in_place() const {
  if (!is_in_place()) fail_moved_away(root_);
}

void RunFolder::check_ours() const {
  check_in_place();
  if (held_) held_->check();
}

bool RunFolder::is_ours() const {
  try {
    check_ours();
    return true;
  } catch (const Error&) {
    return false;
  }
}

const fs::path& RunFolder::place() const {
  check_ours();
  return place_;
}

fs::path RunFolder::place_of(const fs::path& training) const {
  fs::path folder = place();
  for (const fs::path& name : training / checkpoints_name)
    if (fs::is_symlink(folder /= name))
      fail_runtime("{}: a symbolic link took its place while the run was written; put the folder itself there",
                   folder.string());
  return folder.parent_path();
}

void RunFolder::write(const fs::path& name, std::string_view content) const {
  const fs::path file = place() / name;
  make_folder(file.parent_path());
  write_file(file, content);
}

void RunFolder::write_manifest(const fs::path& folder, RunStatus status, const ordered_json& results) const {
  ordered_json manifest = {{"program", program_name},         {"version", HEADSCOPE_VERSION},
                           {"command", description_.command}, {"command_line", command_line_},
                           {"status", status_name(status)},   {"started", started_}};
  if (status != RunStatus::running) manifest["ended"] = utc_now();
  manifest["config"] = description_.config;
  for (const auto& [key, value] : description_.facts.items()) manifest[key] = value;
  for (const auto& [key, value] : results.items()) manifest[key] = value;
  write_file(folder / manifest_name, json_text(manifest));
}

void RunFolder::finish(RunStatus status, const ordered_json& results) {
  check_ours();
  if (description_.shared) clear(names_in(root_));  // of a process that was killed while others went on
  check_ours();
  if (place_ == path_) {
    write_manifest(root_, status, results);
  } else {
    write_manifest(root_ / writing_name, status, results);
    if (replaces_) put_aside();
    publish(root_);
  }
  if (status == RunStatus::complete) drop_replaced(root_);
}

void RunFolder::finish() {
  check_ours();
  write_file(root_ / writing_name / manifest_name, read_file(root_ / manifest_name));
  publish(root_);
}

void RunFolder::fail(RunStatus status, const std::string& message) noexcept {
  try {
    if (held_ && !is_ours()) held_.reset();  // another process took it over
    // Others go on with a shared run: how it ends is for the last of them to say.
    if (!left_ && is_in_place() && (!description_.shared || (hold_for_the_last_note() && !others_at_work())))
      note_failure(status, message);
  } catch (const std::exception&) {
  }
  held_.reset();
}

void RunFolder::note_failure(RunStatus status, const std::string& message) {
  std::error_code error;
  if (fs::exists(root_ / publishing_name, error)) return;  // all is written: the next command finishes it
  const bool in_place = place_ == path_;
  if (!in_place) remove_ours(root_, writing_name);
  // Of a shared run, another process may have put it there.
  const bool is_aside = aside_ || (description_.shared && fs::exists(root_ / replaced_name / manifest_name, error));
  if (is_aside && (!in_place || (has_only_begun() && is_alone()))) return put_back(root_, names_in(root_));
  const bool is_as_it_was =
      already_complete_ || (keeps_status_ && !aside_) || (description_.shared && is_complete(root_));
  if (is_as_it_was) return;
  try {
    write_manifest(root_, status, {{"error", message}});
  } catch (const Error&) {  // no room for another file
    set_status_in_place(root_, status);
  }
}

// No other process has the run open, as far as locks reach. This one ends: it needs the lock that it shares no more.
bool RunFolder::is_alone() const {
  return !description_.shared || lock_file(lock_, LOCK_EX, root_, /*must=*/false);
}

// Waits some seconds for those who open or end the run, whatever signal came. A disk that has no room for a claim may
// have some for a manifest, which is there already.
bool RunFolder::hold_for_the_last_note() {
  constexpr int attempts = 100, age_every = 20;  // an age costs a file
  try {
    for (int i = 0; i < attempts && !held_; ++i) {
      held_ = Claim::take(root_ / claim_name, {}, /*by_age=*/i % age_every == 0);
      if (!held_) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return held_.has_value();
  } catch (const Error&) {
    return true;
  }
}

// No file of the new run is there beside its manifest and configuration, and what says that training began.
bool RunFolder::has_only_begun() const {
  for (auto entry = fs::recursive_directory_iterator(root_); entry != fs::recursive_directory_iterator(); ++entry) {
    const fs::path relative = entry->path().lexically_relative(root_);
    if (relative == replaced_name) entry.disable_recursion_pending();
    const fs::path name = relative.filename();
    if (entry->is_directory() || relative == manifest_name || relative == config_name || relative == lock_name ||
        name == claim_name || name == progress_name || name == events_name)
      continue;
    return false;
  }
  return true;
}

}  // namespace headscope
