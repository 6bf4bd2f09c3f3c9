#include "run/run_folder.h"

#include <gtest/gtest.h>

#include <map>

#include "core/atomic_file.h"
#include "run/names.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
using test::expect_error;
using test::TemporaryFolder;
namespace fs = std::filesystem;

RunDescription description(int rate = 1, RunWrites writes = RunWrites::at_the_end) {
  return {"measure", {{"rate", rate}, {"workers", 2}}, ordered_json::object(), writes};
}

RunDescription streamed(int rate = 1) {
  return description(rate, RunWrites::as_it_goes);
}

// Every file below a folder with its content; the lock aside.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != lock_name)
      files[entry.path().lexically_relative(folder).string()] = read_file(entry.path());
  return files;
}

std::string status_of(const fs::path& run) {
  return read_manifest(run).at("status");
}

// A complete run with one table.
void make_run(const fs::path& out, const std::string& table = "x\n1\n", RunWrites writes = RunWrites::at_the_end) {
  RunFolder run({out}, description(1, writes));
  run.write("surgery.csv", table);
  run.finish(RunStatus::complete, {{"heads", 4}});
}

TEST(RunFolder, EndsWithAManifestThatDescribesTheRun) {
  const TemporaryFolder folder;
  {
    RunFolder run({folder / "run"}, description());
    EXPECT_EQ(status_of(folder / "run"), "running");
    run.write("plots/role_map.gp", "x");
    EXPECT_FALSE(fs::exists(folder / "run" / "plots"));  // not before the end
    EXPECT_EQ(run.final_name(run.place() / "plots" / "role_map.gp"), folder / "run" / "plots" / "role_map.gp");
    run.finish(RunStatus::complete, {{"heads", 4}});
  }
  const ordered_json manifest = read_manifest(folder / "run");
  EXPECT_EQ(manifest.at("status"), "complete");
  EXPECT_EQ(manifest.at("command"), "measure");
  EXPECT_EQ(manifest.at("config").at("rate"), 1);
  EXPECT_EQ(manifest.at("heads"), 4);
  const auto files = files_in(folder / "run");
  EXPECT_EQ(files.size(), 3U);
  EXPECT_EQ(files.at("plots/role_map.gp"), "x");
  EXPECT_EQ(files.at("config.yaml"), "rate: 1\nworkers: 2\n");
}

TEST(RunFolder, AStreamedRunIsThereWhileItIsWritten) {
  const TemporaryFolder folder;
  const RunFolder run({folder / "run"}, streamed());
  run.write("surgery.csv", "x\n");
  EXPECT_EQ(read_file(folder / "run" / "surgery.csv"), "x\n");
}

// Each of these is somebody's work, and each name was once taken for ours.
TEST(RunFolder, AFolderWithSomethingElseInItIsOccupied) {
  for (const char* name : {"thesis.tex", ".git/HEAD", ".DS_Store", ".lock2", ".writing2/x", ".notes.12.0.tmp"}) {
    const TemporaryFolder folder;
    const fs::path file = folder / "mine" / name;
    fs::create_directories(file.parent_path());
    write_file(file, "years of work");
    for (const RunFolderOptions& options :
         {RunFolderOptions{folder / "mine"}, {folder / "mine", true, false}, {folder / "mine", false, true}})
      expect_error(Fault::input, "not a run folder", [&] { RunFolder(options, description()); });
    EXPECT_EQ(files_in(folder / "mine"), (std::map<std::string, std::string>{{name, "years of work"}}));
  }
}

// A run that an earlier version began, with another word for the same thing.
TEST(RunFolder, OfAnEarlierVersionGoesOn) {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  { RunFolder(RunFolderOptions{run}, streamed(1)).write("surgery.csv", "1"); }
  RunDescription now = streamed(2);
  expect_error(Fault::input, "the configuration changed", [&] { RunFolder({run, false, true}, now); });
  now.in_current_words = [&](const nlohmann::ordered_json& before) {
    EXPECT_EQ(before, streamed(1).config);
    return now.config;
  };
  { RunFolder(RunFolderOptions{run, false, true}, now); }
  EXPECT_EQ(read_manifest(run)["config"], now.config);
}

TEST(RunFolder, AFileOfTheUserInARunSurvivesResumeAndForbidsOverwrite) {
  for (const char* name : {"notes.txt", ".git/HEAD", "plots/mine.png", "plots/.git/HEAD", "checkpoints/.keep",
                           "heads.parquet/.keep", "seed_1/notes", ".drawing-mine.txt", "plots/.partial-step-1"}) {
    const TemporaryFolder folder;
    const fs::path run = folder / "run", file = run / name;
    { RunFolder(RunFolderOptions{run}, streamed()).write("surgery.csv", "1"); }
    fs::create_directories(file.parent_path());
    write_file(file, "mine");
    const auto before = files_in(run);
    expect_error(Fault::input, "is not of the run", [&] { RunFolder({run, true}, streamed()); });
    EXPECT_EQ(files_in(run), before) << name;
    { RunFolder(RunFolderOptions{run, false, true}, streamed()); }
    EXPECT_EQ(files_in(run).at(name), "mine");
    EXPECT_EQ(files_in(run).at("surgery.csv"), "1");
  }
}

// What is written at the end takes the place of tables that are there, and of nothing else: neither of what was there
// when a stopped run is done again, nor of what came while a run was replaced.
TEST(RunFolder, AFileOfTheUserSurvivesWhatIsWrittenAtTheEnd) {
  for (const char* name : {"notes.txt", ".git/HEAD", "plots/mine.png", "seed_1/QK/notes", "checkpoints/step-1/notes"}) {
    for (const bool resume : {false, true}) {
      const TemporaryFolder folder;
      const fs::path run = folder / "run";
      make_run(run, "old");
      if (resume) {
        ordered_json manifest = read_manifest(run);
        manifest["status"] = "interrupted";
        write_file(run / "manifest.json", manifest.dump());
      }
      const auto put = [&] {
        fs::create_directories((run / name).parent_path());
        write_file(run / name, "mine");
      };
      if (resume) put();
      {
        RunFolder again({run, !resume, resume}, description());
        if (!resume) put();
        again.write("surgery.parquet", "new");
        again.write("plots/role_map.gp", "new");
        again.finish(RunStatus::complete, {});
      }
      const auto files = files_in(run);
      EXPECT_EQ(files.at(name), "mine");
      EXPECT_EQ(files.at("surgery.parquet"), "new");
      EXPECT_FALSE(files.contains("surgery.csv"));
      EXPECT_EQ(files.size(), 5U) << name;  // manifest, configuration, table, figure, and the user's
    }
  }
}

TEST(RunFolder, TheManifestOfAnotherProgramMakesNoRun) {
  for (const char* manifest :
       {R"({"name": "my web app"})", R"({"program": "other", "command": "measure"})", "{}", ""}) {
    const TemporaryFolder folder;
    fs::create_directories(folder / "app" / ".writing");
    write_file(folder / "app" / "manifest.json", manifest);
    write_file(folder / "app" / ".writing" / "thesis", "years of work");
    const auto before = files_in(folder / "app");
    for (const RunFolderOptions& options :
         {RunFolderOptions{folder / "app"}, {folder / "app", true, false}, {folder / "app", false, true}})
      expect_error(Fault::input, "is damaged or of another program", [&] { RunFolder(options, description()); });
    expect_error(Fault::input, "is damaged or of another program", [&] { RunFolder::add_to(folder / "app"); });
    EXPECT_EQ(files_in(folder / "app"), before);
  }
}

// A kill after the old run was set aside, before the new one had a manifest.
TEST(RunFolder, ARunThatWasSetAsideComesBackBesideFilesOfTheUser) {
  const TemporaryFolder folder;
  const fs::path run = folder / "run";
  make_run(run, "old");
  const auto before = files_in(run);
  fs::create_directory(run / ".replaced");
  for (const char* name : {"manifest.json", "config.yaml", "surgery.csv"})
    fs::rename(run / name, run / ".replaced" / name);
  write_file(run / "notes.txt", "mine");
  RunFolder::add_to(run).finish();
  auto after = files_in(run);
  EXPECT_EQ(after["notes.txt"], "mine");
  after.erase("notes.txt");
  EXPECT_EQ(after, before);
}

// A table puts its own folders in order: src/formats/part_table.h. A user's file may be in one of them.
TEST(RunFolder, TheFolderOfAMergeIsLeftToItsTable) {
  const TemporaryFolder folder;
  make_run(folder / "run");
  fs::create_directory(folder / "run" / ".heads.parquet.merged");
  write_file(folder / "run" / ".heads.parquet.merged" / "notes", "mine");
  RunFolder::add_to(folder / "run").finish();
  EXPECT_EQ(files_in(folder / "run").at(".heads.parquet.merged/notes"), "mine");
}

TEST(RunFolder, AFailureAfterACompleteRunLeavesItComplete) {
  for (const RunWrites writes : {RunWrites::at_the_end, RunWrites::as_it_goes}) {
    const TemporaryFolder folder;
    make_run(folder / "run", "old", writes);
    const auto before = files_in(folder / "run");
    RunFolder run({folder / "run", false, true}, description(1, writes));
    EXPECT_ANY_THROW(run.live([]() -> int { throw Error(Fault::input, "roles.json is damaged"); }));
    EXPECT_EQ(files_in(folder / "run"), before);
  }
}

TEST(RunFolder, AnObstacleIsNamedBeforeAnythingIsMoved) {
  const TemporaryFolder folder;
  make_run(folder / "run");
  write_file(folder / "run" / "plots", "a file in the place of a folder");
  const auto before = files_in(folder / "run");
  {
    RunFolder run = RunFolder::add_to(folder / "run");
    run.write("roles.json", "{}");
    run.write("plots/role_map.gp", "x");
    expect_error(Fault::runtime, "plots: is in the way of a folder", [&] { run.live([&] { run.finish(); }); });
  }
  EXPECT_EQ(files_in(folder / "run"), before);
  expect_error(Fault::input, "plots is not of the run", [&] { RunFolder({folder / "run", true}, description()); });
}

TEST(RunFolder, ExistingRunsAreReplacedOnlyWhenAsked) {
  const TemporaryFolder folder;
  make_run(folder / "run", "old");
  expect_error(Fault::input, "exists and is complete; replace it with --overwrite",
               [&] { RunFolder({folder / "run"}, description()); });
  for (const RunWrites writes : {RunWrites::at_the_end, RunWrites::as_it_goes}) {
    const fs::path begun = folder / (writes == RunWrites::at_the_end ? "a" : "b");
    { RunFolder(RunFolderOptions{begun}, description(1, writes)); }
    expect_error(Fault::input,
                 writes == RunWrites::at_the_end ? "exists; replace it" : "exists; go on with --resume, replace it",
                 [&] { RunFolder({begun}, description(1, writes)); });
  }
  {
    RunFolder run({folder / "run", true}, description(2));
    run.write("surgery.parquet", "new");
    EXPECT_EQ(files_in(folder / "run").at("surgery.csv"), "old");  // until the end
    run.finish(RunStatus::complete, {});
  }
  const auto files = files_in(folder / "run");
  EXPECT_FALSE(files.contains("surgery.csv"));
  EXPECT_EQ(files.at("surgery.parquet"), "new");
  EXPECT_EQ(files.size(), 3U);
  write_file(folder / "file", "");
  expect_error(Fault::input, "is a file; expected a folder", [&] { RunFolder({folder / "file"}, description()); });
}

TEST(RunFolder, AFailureLeavesWhatWasThere) {
  for (const RunWrites writes : {RunWrites::at_the_end, RunWrites::as_it_goes}) {
    const TemporaryFolder folder;
    make_run(folder / "run", "old");
    const auto before = files_in(folder / "run");
    RunFolder run({folder / "run", true}, description(2, writes));
    EXPECT_THROW(run.live([&]() -> int {
      if (writes == RunWrites::at_the_end) run.write("surgery.parquet", "new");
      throw std::runtime_error("x");
    }),
                 std::runtime_error);
    EXPECT_EQ(files_in(folder / "run"), before);
  }
}

TEST(RunFolder, AStreamedRunThatGotOnIsKeptBesideWhatItReplaces) {
  const TemporaryFolder folder;
  make_run(folder / "run", "old");
  const auto before = files_in(folder / "run");
  {
    RunFolder run({folder / "run", true}, streamed(2));
    EXPECT_THROW(run.live([&]() -> int {
      run.write("surgery.parquet", "hours of work");
      throw Error(Fault::runtime, "disk full");
    }),
                 Error);
  }
  EXPECT_EQ(status_of(folder / "run"), "failed");
  EXPECT_EQ(files_in(folder / "run" / ".replaced"), before);
  {
    RunFolder run({folder / "run", false, true}, streamed(2));
    EXPECT_EQ(read_file(folder / "run" / "surgery.parquet"), "hours of work");
    run.finish(RunStatus::complete, {});
  }
  EXPECT_FALSE(fs::exists(folder / "run" / ".replaced"));
  EXPECT_EQ(status_of(folder / "run"), "complete");
}

TEST(RunFolder, EveryExceptionEndsInAStatus) {
  const TemporaryFolder folder;
  const auto ends = [&](const char* name, auto&& body, const char* status, const std::string& message) {
    RunFolder run({folder / name}, description());
    EXPECT_ANY_THROW(run.live(body));
    const ordered_json manifest = read_manifest(folder / name);
    EXPECT_EQ(manifest.at("status"), status);
    EXPECT_EQ(manifest.at("error"), message);
    EXPECT_EQ(files_in(folder / name).size(), 1U);
  };
  ends(
      "a", []() -> int { throw Error(Fault::input, "bad row"); }, "failed", "bad row");
  ends(
      "b", []() -> int { throw Error(Fault::interrupted, "stopped"); }, "interrupted", "stopped");
  ends(
      "c", []() -> int { throw std::bad_alloc(); }, "failed", "std::bad_alloc");
  ends(
      "d", []() -> int { throw 7; }, "failed", "unknown error");
  RunFolder again({folder / "d", false, true}, description());  // and can be done again
  again.finish(RunStatus::complete, {});
  EXPECT_EQ(status_of(folder / "d"), "complete");
}

TEST(RunFolder, AResumedRunIsWrittenOnce) {
  const TemporaryFolder folder;
  make_run(folder / "run");
  const auto before = files_in(folder / "run");
  EXPECT_TRUE(RunFolder(RunFolderOptions{folder / "run", false, true}, description()).already_complete());
  EXPECT_EQ(files_in(folder / "run"), before);
}

TEST(RunFolder, ResumeNamesChangedKeysAndAllowsFreeOnes) {
  const TemporaryFolder folder;
  { RunFolder run({folder / "run"}, description(1)); }
  expect_error(Fault::input, "the configuration changed: rate (was 1, now 2)", [&] {
    RunFolder({folder / "run", false, true}, description(2));
  });
  RunDescription more_workers = description(1);
  more_workers.config["workers"] = 8;
  expect_error(Fault::input, "workers (was 2, now 8)", [&] { RunFolder({folder / "run", false, true}, more_workers); });
  more_workers.free_keys = {"workers"};
  EXPECT_FALSE(RunFolder(RunFolderOptions{folder / "run", false, true}, more_workers).already_complete());
  RunDescription other = description(1);
  other.command = "train";
  expect_error(Fault::input, "is a run of 'measure', not of 'train'", [&] {
    RunFolder({folder / "run", false, true}, other);
  });
}

TEST(RunFolder, ASecondWriterIsRefused) {
  const TemporaryFolder folder;
  const RunFolder first({folder / "run"}, description());
  expect_error(Fault::input, "another process is writing it", [&] {
    RunFolder({folder / "run", false, true}, description());
  });
  expect_error(Fault::input, "another process is writing it", [&] { RunFolder::add_to(folder / "run"); });
}

TEST(RunFolder, AKillBeforeTheFirstManifestLeavesAFolderThatCanBeUsed) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run");
  write_file(folder / "run" / ".lock", "");
  write_file(folder / "run" / ".manifest.json.17.0.tmp", "{\"half");
  fs::create_directories(folder / "run" / ".drawing-abcdef");
  const RunFolder run({folder / "run", false, true}, streamed());
  EXPECT_FALSE(fs::exists(folder / "run" / ".manifest.json.17.0.tmp"));
  EXPECT_FALSE(fs::exists(folder / "run" / ".drawing-abcdef"));
  EXPECT_EQ(status_of(folder / "run"), "running");
}

TEST(RunFolder, WhatIsAddedAppearsAtTheEndAndTheManifestStays) {
  const TemporaryFolder folder;
  make_run(folder / "run");
  const auto before = files_in(folder / "run");
  {
    RunFolder run = RunFolder::add_to(folder / "run");
    run.write("plots/role_map.gp", "x");
    EXPECT_FALSE(fs::exists(folder / "run" / "plots"));
    run.finish();
  }
  auto after = files_in(folder / "run");
  EXPECT_EQ(after.at("plots/role_map.gp"), "x");
  after.erase("plots/role_map.gp");
  EXPECT_EQ(after, before);

  RunFolder run = RunFolder::add_to(folder / "run");
  EXPECT_THROW(run.live([&]() -> int {
    run.write("plots/role_map.gp", "y");
    throw 1;
  }),
               int);
  EXPECT_EQ(files_in(folder / "run").at("plots/role_map.gp"), "x");
  EXPECT_EQ(status_of(folder / "run"), "complete");
}

TEST(RunFolder, AConditionIsAPartOfItsStudy) {
  const TemporaryFolder folder;
  make_run(folder / "study");
  fs::create_directories(folder / "study" / "seed_42" / "QK");
  RunFolder run = RunFolder::add_to(folder / "study" / "seed_42" / "QK");
  run.write("roles.json", "{}");
  expect_error(Fault::input, "another process is writing it", [&] { RunFolder::add_to(folder / "study"); });
  run.finish();
  EXPECT_EQ(read_file(folder / "study" / "seed_42" / "QK" / "roles.json"), "{}");
  EXPECT_EQ(status_of(folder / "study"), "complete");
}

TEST(RunFolder, ALinkIsNeverFollowed) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "outside");
  make_run(folder / "other");
  fs::rename(folder / "other" / "manifest.json", folder / "outside" / "file");  // valid where a manifest is read
  const auto before = files_in(folder / "outside");
  for (const char* name : {".lock", "plots", "manifest.json", "config.yaml", "checkpoints", "heads.parquet", ".writing",
                           ".publishing", ".replaced", ".removing", "QK", "finished_heads.journal"}) {
    const fs::path run = folder / ("run " + std::string(name));
    make_run(run);
    fs::remove_all(run / name);
    const bool is_folder = std::string_view(name).find('.') == std::string_view::npos || name[0] == '.';
    fs::create_symlink(folder / "outside" / (is_folder && name != std::string(".lock") ? "" : "file"), run / name);
    for (const RunFolderOptions& options : {RunFolderOptions{run, true, false}, {run, false, true}})
      expect_error(Fault::input, "symbolic link", [&] { RunFolder(options, streamed()); });
    expect_error(Fault::input, "symbolic link", [&] { RunFolder::add_to(run); });
    EXPECT_EQ(files_in(folder / "outside"), before) << name;
  }
}

TEST(RunFolder, AFileOfTheUserWhereRunsAreWrittenIsNeitherMovedNorRemoved) {
  for (const char* name : {".writing/thesis", ".removing/thesis", ".publishing/thesis", ".publishing/.git/config",
                           ".replaced/thesis", ".writing", ".removing/plots/mine.png"}) {
    const TemporaryFolder folder;
    const fs::path run = folder / "run";
    make_run(run);
    fs::create_directories((run / name).parent_path());
    write_file(run / name, "years of work");
    write_file(run / "thesis", "newer");
    const auto before = files_in(run);
    for (const RunFolderOptions& options : {RunFolderOptions{run, true, false}, {run, false, true}})
      expect_error(Fault::input, "is not of the run, yet lies where a run is written",
                   [&] { RunFolder(options, description()); });
    expect_error(Fault::input, "is not of the run, yet lies where a run is written", [&] { RunFolder::add_to(run); });
    EXPECT_EQ(files_in(run), before) << name;
    // The same without a run beside it.
    for (const auto& entry : fs::directory_iterator(run))
      if (!entry.is_directory() && entry.path().filename() != name) fs::remove(entry);
    expect_error(Fault::input, "so it is not a run folder", [&] { RunFolder({run}, description()); });
    EXPECT_EQ(files_in(run), (std::map<std::string, std::string>{{name, "years of work"}}));
  }
}

// Somebody moves the folder of a running command away and another run to its place.
TEST(RunFolder, ARunThatWasMovedAwayWritesNothingInItsOldPlace) {
  for (const RunWrites writes : {RunWrites::at_the_end, RunWrites::as_it_goes}) {
    const TemporaryFolder folder;
    make_run(folder / "precious", "old");
    const auto before = files_in(folder / "precious");
    RunFolder run({folder / "run"}, description(1, writes));
    fs::rename(folder / "run", folder / "moved");
    fs::rename(folder / "precious", folder / "run");
    expect_error(Fault::runtime, "was moved away", [&] { run.live([&] { run.write("surgery.csv", "new"); }); });
    expect_error(Fault::runtime, "was moved away", [&] { static_cast<void>(run.place()); });
    expect_error(Fault::runtime, "was moved away", [&] { run.finish(RunStatus::complete, {}); });
    EXPECT_EQ(files_in(folder / "run"), before);
  }
}

TEST(RunFolder, ALinkThatComesInThePlaceOfATrainingIsNotFollowed) {
  const TemporaryFolder folder;
  const RunFolder run({folder / "run"}, description(1, RunWrites::as_it_goes));
  fs::create_directories(folder / "run/seed_3/QK/checkpoints");
  fs::create_directories(folder / "elsewhere/QK");
  EXPECT_EQ(run.place_of("seed_3/QK"), folder / "run/seed_3/QK");
  EXPECT_EQ(run.place_of("seed_3/NoQK"), folder / "run/seed_3/NoQK");  // not there yet
  EXPECT_EQ(run.place_of({}), folder / "run");
  for (const char* part : {"seed_3/QK/checkpoints", "seed_3/QK", "seed_3"}) {
    fs::remove_all(folder / "run" / part);
    fs::create_directory_symlink(folder / "elsewhere", folder / "run" / part);
    expect_error(Fault::runtime, std::string(part) + ": a symbolic link took its place",
                 [&] { static_cast<void>(run.place_of("seed_3/QK")); });
  }
}

TEST(RunFolder, WhatIsReadIsNotReplaced) {
  const TemporaryFolder folder;
  make_run(folder / "run");
  const auto before = files_in(folder / "run");
  RunDescription reads = streamed();
  reads.inputs = {folder / "run" / "data"};
  expect_error(Fault::input, "which is to be read", [&] { RunFolder({folder / "run", true}, reads); });
  EXPECT_EQ(files_in(folder / "run"), before);
  reads.inputs = {folder / "run2"};
  RunFolder({folder / "run", true}, reads);
}

TEST(RunFolder, ARunInsideAnotherKeepsClearOfIt) {
  const TemporaryFolder folder;
  RunFolder outer({folder / "run"}, streamed());
  for (const char* name : {"plots", "checkpoints", "seed_1", "QK", ".writing", ".replaced/QK"})
    expect_error(Fault::input, "is a part of the run", [&] { RunFolder({folder / "run" / name}, description()); });
  expect_error(Fault::input, "which another process is writing",
               [&] { RunFolder({folder / "run" / "inspection"}, description()); });
  EXPECT_FALSE(fs::exists(folder / "run" / "inspection"));
}

}  // namespace
}  // namespace headscope
