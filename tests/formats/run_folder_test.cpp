#include "formats/run_folder.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>

#include "core/atomic_file.h"
#include "formats/journal.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"
#include "support/time_limit.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;
using testing::expect_error;
using testing::TemporaryFolder;
namespace fs = std::filesystem;

RunDescription description(int rate = 1) {
  return {"measure", "headscope measure", {{"rate", rate}, {"workers", 2}}, ordered_json::object()};
}

TEST(RunFolder, EndsWithAManifestThatDescribesTheRun) {
  const TemporaryFolder folder;
  {
    RunFolder run({folder / "run"}, description());
    EXPECT_EQ(read_manifest(folder / "run").at("status"), "running");
    run.write("tables/a.csv", "x\n1\n");
    run.finish(RunStatus::complete, {{"heads", 4}});
  }
  const ordered_json manifest = read_manifest(folder / "run");
  EXPECT_EQ(manifest.at("status"), "complete");
  EXPECT_EQ(manifest.at("command"), "measure");
  EXPECT_EQ(manifest.at("config").at("rate"), 1);
  EXPECT_EQ(manifest.at("heads"), 4);
  EXPECT_EQ(read_file(folder / "run" / "tables" / "a.csv"), "x\n1\n");
  EXPECT_EQ(read_file(folder / "run" / "config.yaml"), "rate: 1\nworkers: 2\n");
}

TEST(RunFolder, ExistingFoldersAreNotTouchedUnasked) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "mine");
  write_file(folder / "mine" / "thesis.tex", "years of work");
  expect_error(Fault::input, "not a run folder", [&] { RunFolder({folder / "mine"}, description()); });
  expect_error(Fault::input, "not a run folder", [&] { RunFolder({folder / "mine", true}, description()); });
  EXPECT_EQ(read_file(folder / "mine" / "thesis.tex"), "years of work");

  RunFolder({folder / "run"}, description()).write("result", "1");
  expect_error(Fault::input, "exists; go on with --resume, replace it with --overwrite",
               [&] { RunFolder({folder / "run"}, description()); });
  EXPECT_EQ(read_file(folder / "run" / "result"), "1");
  const RunFolder replaced({folder / "run", true}, description());
  EXPECT_FALSE(fs::exists(folder / "run" / "result"));
  write_file(folder / "file", "");
  expect_error(Fault::input, "is a file; expected a folder", [&] { RunFolder({folder / "file"}, description()); });
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
  EXPECT_FALSE(RunFolder({folder / "run", false, true}, more_workers, {"workers"}).already_complete());
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
}

TEST(RunFolder, AKillBeforeTheFirstManifestLeavesAFolderThatCanBeUsed) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "run");
  write_file(folder / "run" / ".lock", "");
  write_file(folder / "run" / ".manifest.json.17.0.tmp", "{\"half");
  fs::create_directories(folder / "run" / ".drawing-abc" / "inner");
  const RunFolder run({folder / "run", false, true}, description());
  EXPECT_FALSE(fs::exists(folder / "run" / ".manifest.json.17.0.tmp"));
  EXPECT_FALSE(fs::exists(folder / "run" / ".drawing-abc"));
  EXPECT_EQ(read_manifest(folder / "run").at("status"), "running");
}

TEST(Manifest, DamageIsNamed) {
  const TemporaryFolder folder;
  expect_error(Fault::input, "holds no manifest.json", [&] { read_manifest(folder.path()); });
  write_file(folder / "manifest.json", "{\"status\": ");
  expect_error(Fault::input, "is damaged", [&] { read_manifest(folder.path()); });
}

TEST(Journal, KeepsWholeRecordsWhereverTheFileIsCut) {
  const TemporaryFolder folder;
  const std::vector<std::string> records = {"first", "", std::string("\0\n\xff", 3), std::string(1000, 'x')};
  {
    Journal journal(folder / "j");
    for (const std::string& record : records) journal.append(record);
  }
  const std::string whole = read_file(folder / "j");
  for (std::size_t cut = 0; cut <= whole.size(); ++cut) {
    const JournalContent content = parse_journal(std::string_view(whole).substr(0, cut));
    ASSERT_LE(content.length, cut);
    ASSERT_LE(content.records.size(), records.size());
    for (std::size_t i = 0; i < content.records.size(); ++i) ASSERT_EQ(content.records[i], records[i]);
    ASSERT_EQ(content.records.size() == records.size(), cut == whole.size());
  }
}

TEST(Journal, ATornEndIsCutOffAndWritingGoesOn) {
  const TemporaryFolder folder;
  { Journal(folder / "j").append("kept"); }
  const std::string whole = read_file(folder / "j");
  write_file(folder / "j", whole + "torn");
  {
    Journal journal(folder / "j");
    EXPECT_EQ(journal.records(), std::vector<std::string>{"kept"});
    journal.append("next");
  }
  EXPECT_EQ(Journal(folder / "j").records(), (std::vector<std::string>{"kept", "next"}));
}

TEST(Journal, ALinkIsRefusedAndItsTargetKept) {
  const TemporaryFolder folder;
  write_file(folder / "thesis.tex", "years of work");
  fs::create_symlink(folder / "thesis.tex", folder / "j");
  expect_error(Fault::input, "j: is a symbolic link", [&] { Journal(folder / "j"); });
  EXPECT_EQ(read_file(folder / "thesis.tex"), "years of work");
  fs::remove(folder / "j");
  fs::create_symlink(folder / "absent", folder / "j");
  expect_error(Fault::input, "j: is a symbolic link", [&] { Journal(folder / "j"); });
  EXPECT_FALSE(fs::exists(folder / "absent"));
}

TEST(Journal, ANamedPipeIsRefusedAtOnce) {
  const testing::TimeLimit limit(10);
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "j").c_str(), 0600), 0);
  expect_error(Fault::input, "j: is not a regular file", [&] { Journal(folder / "j"); });
}

TEST(Journal, AFlippedByteEndsTheRecordsBeforeIt) {
  const TemporaryFolder folder;
  {
    Journal journal(folder / "j");
    journal.append("one");
    journal.append("two");
  }
  std::string bytes = read_file(folder / "j");
  bytes.back() ^= 1;
  EXPECT_EQ(parse_journal(bytes).records, std::vector<std::string>{"one"});
}

// A limit on file sizes stands in for a full disk: a write ends in the middle of a record.
TEST(Journal, AFullDiskKeepsWholeRecordsAndSaysHowToGoOn) {
  const TemporaryFolder folder;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  {
    Journal journal(folder / "j");
    journal.append("kept");
    const rlimit small{100, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
    expect_error(Fault::runtime, "go on with --resume", [&] { journal.append(std::string(1000, 'x')); });
    ::setrlimit(RLIMIT_FSIZE, &before);
    journal.append("later");
  }
  EXPECT_EQ(Journal(folder / "j").records(), (std::vector<std::string>{"kept", "later"}));
}

}  // namespace
}  // namespace headscope
