// The folder that a command writes: manifest.json, config.yaml, tables and figures. Its life is the same for every
// command: it is opened and locked, written, and finished or failed. One process writes it at a time, but for a run
// that is shared (RunDescription). What was there before stays as it was until the command succeeds.
//
//   RunFolder run(options, description);               // a new run, one to go on with, or one to replace
//   return run.live([&] {                              // whatever is thrown becomes the status of the run
//     run.write("table.csv", …);                       // or anything below run.place()
//     run.finish(RunStatus::complete, {{"heads", 4}});
//   });
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/regular_file.h"
#include "run/claim.h"
#include "run/manifest.h"
#include "run/names.h"
#include "run/waiting.h"

namespace headscope {

struct RunFolderOptions {
  std::filesystem::path out;
  bool overwrite = false;         // replace a run that is there
  bool resume = false;            // go on with it
  bool join = false;              // the same where it is there; otherwise begin it: tasks of Slurm do so
  std::string command_line = {};  // as typed, for the manifest
};

enum class RunWrites {
  at_the_end,  // below a hidden folder; all of it appears when the run is finished
  as_it_goes,  // in place: others read it meanwhile, and a run that was stopped goes on with it
};

// What the manifest records beside status and times.
struct RunDescription {
  std::string command;            // the subcommand: "plasticity"
  nlohmann::ordered_json config;  // resolved
  nlohmann::ordered_json facts;   // whatever else makes the run self-describing: definitions, device, seeds
  RunWrites writes = RunWrites::at_the_end;
  std::vector<std::string> free_keys = {};  // of the configuration: a resumed run may change them
  // The configuration of a run that an earlier version began, in the words of this one.
  std::function<nlohmann::ordered_json(nlohmann::ordered_json)> in_current_words = {};
  std::vector<std::filesystem::path> inputs = {};  // what is read; a run that holds it is not replaced
  // Several processes may write it, on several machines, each of them trainings that it claimed (claim.h). The first
  // begins the run; others join with the same configuration, by `resume` or `join`.
  bool shared = false;
  Say say = {};  // where this process waits for another one
};

// Throws Error(Fault::input) when the folder has a name that a run around it uses, or another process writes that run.
void refuse_part_of_a_run(const std::filesystem::path& out);

// Refuses what RunFolder would refuse, as far as that shows without the lock. Changes nothing.
void check_out(const RunFolderOptions& options, const std::string& command, RunWrites writes);

// The manifest of the run that --resume goes on with; nothing without --resume, or where no run is. Throws what
// check_out would.
std::optional<nlohmann::ordered_json> manifest_to_resume(const RunFolderOptions& options, const std::string& command,
                                                         RunWrites writes);

// Of a run that somebody moved while it was written, so that another may have its name.
[[noreturn]] void fail_moved_away(const std::filesystem::path& run);

// What a user types to go on: "go on with: headscope train --resume --out DIR".
std::string resume_hint(const std::string& command, const std::filesystem::path& out);

class RunFolder {
 public:
  // Creates the folder, or opens it to go on or to replace it, and locks it. Throws Error(Fault::input) when the folder
  // exists and neither `overwrite` nor `resume` is given, when it holds something that is not ours, when it is of
  // another command, when another process writes it, or when `resume` meets a changed configuration.
  RunFolder(const RunFolderOptions& options, RunDescription description);

  // To add to a run that is there (roles, figures): `place` is its folder, or that of a condition in it. Its manifest
  // and status stay. Throws Error(Fault::input) when it is no run or another process writes it.
  static RunFolder add_to(const std::filesystem::path& place);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  // Where files are written now; they are in path() when the run is finished. Ask again before each group of files:
  // throws Error(Fault::runtime) when the folder was moved away, because another may have its name now, and ClaimLost
  // when this process held the run and another one does now.
  [[nodiscard]] const std::filesystem::path& place() const;
  // Whether place() would not throw.
  [[nodiscard]] bool is_ours() const;
  // The same as place() for a training in the run ("" or "QK"). Throws when a link came in the place of one of its
  // folders, too: nothing is written outside of the run.
  [[nodiscard]] std::filesystem::path place_of(const std::filesystem::path& training) const;
  // The name that a file below place() will have.
  [[nodiscard]] std::filesystem::path final_name(const std::filesystem::path& file) const;
  // The folder was there and says it is complete: nothing is left to do.
  [[nodiscard]] bool already_complete() const { return already_complete_; }

  // What the manifest said when the run was opened to go on with it; null for one that begins.
  [[nodiscard]] const nlohmann::ordered_json& before() const { return before_; }

  // Of a shared run: this process works on it, so its status is `running`, whatever one that failed before said.
  void note_running();
  // Of a shared run: this process ends, and the one that started it goes on with the run. How the run ends is not for
  // this one to say.
  void leave_to_others() { left_ = true; }
  // Of a shared run: waits until no other process opens or ends it, or notes that it runs. Those wait until this object
  // is gone. Also again, where another one took this over because this one was silent for too long. Throws when the
  // folder was moved away.
  void hold();

  // Of a shared run: what a process that is gone, or was silent for too long, left half-written below this folder of
  // the run, of which this process has the claim. One that is only silent can then no longer give it its name.
  void remove_leftovers(const std::filesystem::path& training) const;

  // A file of the run, written atomically; folders above it are made.
  void write(const std::filesystem::path& name, std::string_view content) const;
  // The same as a function, for who knows nothing of runs.
  [[nodiscard]] auto writer() const {
    return [this](const std::filesystem::path& name, std::string_view content) { write(name, content); };
  }

  // Last of all: what was written appears, and the manifest has its final status and results.
  void finish(RunStatus status, const nlohmann::ordered_json& results);
  // The same for what add_to opened.
  void finish();

  // Returns body(). Whatever it throws becomes the status of the run and goes on to the caller.
  template <class Body>
  auto live(Body&& body) {
    const InterruptGuard guard;
    try {
      return body();
    } catch (const Error& error) {
      fail(error.fault() == Fault::interrupted ? RunStatus::interrupted : RunStatus::failed, error.what());
      check_in_place();  // where it was moved away, that is why
      throw;
    } catch (const std::exception& error) {
      fail(RunStatus::failed, error.what());
      check_in_place();
      throw;
    } catch (...) {
      fail(RunStatus::failed, "unknown error");
      throw;
    }
  }

 private:
  void check_in_place() const;
  void check_ours() const;
  RunFolder(std::filesystem::path root, std::filesystem::path path, RunDescription description);

  void open_lock();
  void take_lock();
  bool share_lock();
  void share_lock_again();
  [[noreturn]] void refuse_silent_one() const;
  void open_shared(const RunFolderOptions& options);
  void put_in_order();
  void clear(const RunNames& names) const;
  [[nodiscard]] bool others_at_work() const;
  [[nodiscard]] bool is_alone() const;
  [[nodiscard]] Waiting waiting(const std::string& until) const;
  [[nodiscard]] Claim wait_for_claim() const;
  [[nodiscard]] bool hold_for_the_last_note();
  void open_existing(const RunFolderOptions& options, const nlohmann::ordered_json& manifest);
  void begin();
  void put_aside();
  void write_below(const std::filesystem::path& inside);
  // The error that ended the run is the one to report: a full disk may refuse this last note, too.
  void fail(RunStatus status, const std::string& message) noexcept;
  void note_failure(RunStatus status, const std::string& message);
  void write_manifest(const std::filesystem::path& folder, RunStatus status,
                      const nlohmann::ordered_json& results) const;
  [[nodiscard]] bool has_only_begun() const;
  [[nodiscard]] bool is_in_place() const;

  std::string command_line_;
  std::filesystem::path root_;  // holds the manifest and the lock; path_ may be a condition in it
  std::filesystem::path path_, place_;
  RunDescription description_;
  std::string started_;
  nlohmann::ordered_json before_;
  Descriptor lock_;
  std::optional<Claim> held_;  // the run's own, while it is opened or ended
  bool already_complete_ = false;
  bool replaces_ = false;      // what is in the folder goes away when this run is finished
  bool aside_ = false;         // it is in .replaced, where this object put it
  bool left_ = false;          // leave_to_others
  bool keeps_status_ = false;  // a run is there whose manifest stays as it is until this one is finished
};

}  // namespace headscope
