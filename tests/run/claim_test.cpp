#include "run/claim.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "run/names.h"
#include "run/run_folder.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

extern "C" void __attribute__((weak)) __tsan_init();  // there where ThreadSanitizer is linked in

namespace headscope {
namespace {

using test::expect_error;
using test::TemporaryFolder;
namespace fs = std::filesystem;

// A process of its own, which ends when the body returns.
pid_t in_a_process(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    body();
  } catch (const std::exception&) {
    ::_exit(1);
  }
  ::_exit(0);
}

int exit_code(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A minute at most.
void wait_until(const std::function<bool()>& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!is_so() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(is_so());
}

void make_older(const fs::path& file, int seconds) {
  fs::last_write_time(file, fs::last_write_time(file) - std::chrono::seconds(seconds));
}

// The claim of a process on another machine, which renewed it so long ago.
void claim_elsewhere(const fs::path& file, int seconds_ago, const std::string& token = "17") {
  write_file(file, json_text({{"host", "elsewhere"},
                              {"process", 1},
                              {"time", "2026-11-18T12:00:00Z"},
                              {"machine", "another"},
                              {"started", 1},
                              {"token", token}}));
  make_older(file, seconds_ago);
}

std::set<std::string> names_in_folder(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// Where the processes of a race meet, in memory that they share.
struct Meeting {
  std::atomic<int> at_claim[1000], done;
  std::atomic<int> won[8];
  std::atomic<bool> is_broken;  // one of them failed: the others do not wait for it
};

// The processes try every claim, all of them at the same moment, and keep what they win until all have tried: then no
// claim was free for a second one. Returns how many they won together.
int race(const TemporaryFolder& folder, int claims, int processes) {
  void* memory = ::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* meeting = new (memory) Meeting();
  const auto wait_for_all = [&](std::atomic<int>& arrived) {
    ++arrived;
    while (arrived < processes && !meeting->is_broken) std::this_thread::yield();
  };
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process)
    children.push_back(in_a_process([&] {
      std::vector<Claim> won;
      for (int i = 0; i < claims; ++i) {
        wait_for_all(meeting->at_claim[i]);
        try {
          if (auto claim = Claim::take(folder / std::to_string(i) / claim_name)) won.push_back(std::move(*claim));
        } catch (const std::exception&) {
          meeting->is_broken = true;
          throw;
        }
      }
      meeting->won[process] = static_cast<int>(won.size());
      wait_for_all(meeting->done);
    }));
  int won = 0;
  for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0);
  for (const auto& of_one : meeting->won) won += of_one;
  ::munmap(memory, sizeof(Meeting));
  return won;
}

TEST(Claim, OfTwoProcessesThatRaceOneWinsEach) {
  const TemporaryFolder folder;
  constexpr int claims = 1000;
  for (int i = 0; i < claims; ++i) fs::create_directories(folder / std::to_string(i));
  EXPECT_EQ(race(folder, claims, 2), claims);
  for (int i = 0; i < claims; ++i) EXPECT_THAT(names_in_folder(folder / std::to_string(i)), ::testing::IsEmpty());
}

TEST(Claim, OfThreeProcessesThatTakeOverOneWinsEach) {
  const TemporaryFolder folder;
  constexpr int claims = 300;
  for (int i = 0; i < claims; ++i) {
    fs::create_directories(folder / std::to_string(i));
    claim_elsewhere(folder / std::to_string(i) / claim_name, 121, std::to_string(i));
    // A third of them were being taken over when that process died; it had the right to, and left it.
    if (i % 3 == 0)
      claim_elsewhere(folder / std::to_string(i) / fmt::format(".{}.{}.0.tmp", claim_name, i), 121,
                      std::to_string(1000 + i));
  }
  EXPECT_EQ(race(folder, claims, 3), claims);
  for (int i = 0; i < claims; ++i) EXPECT_THAT(names_in_folder(folder / std::to_string(i)), ::testing::IsEmpty());
}

TEST(Claim, SaysWhoHasItAndGoesAwayWithIt) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  {
    const auto claim = Claim::take(file);
    ASSERT_TRUE(claim);
    const auto text = parse_json(read_file(file));
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    EXPECT_EQ(text.at("host"), host);
    EXPECT_EQ(text.at("process"), ::getpid());
    EXPECT_THAT(text.at("time").get<std::string>(), ::testing::MatchesRegex("20..-..-..T..:..:..Z"));
    EXPECT_TRUE(is_claimed(file));
    EXPECT_FALSE(Claim::take(file));
  }
  EXPECT_FALSE(is_claimed(file));
  EXPECT_THAT(names_in_folder(folder.path()), ::testing::IsEmpty());
}

TEST(Claim, IsRenewedAndThenNeverTakenOver) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  auto claim = Claim::take(file, {.renew = 0.01, .lapse = 120});
  ASSERT_TRUE(claim);
  for (int i = 0; i < 3; ++i) {  // as if 100 s passed, three times: without renewal it would lapse
    const auto older = fs::last_write_time(file) - std::chrono::seconds(100);
    fs::last_write_time(file, older);
    EXPECT_FALSE(Claim::take(file));
    wait_until([&] { return fs::last_write_time(file) > older + std::chrono::seconds(50); });
  }
  EXPECT_NO_THROW(claim->check());
}

// A machine that slept for longer than a lapse: its owners renew their claims within a second.
TEST(Claim, IsNotTakenOverWhileItsOwnerWakes) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  auto claim = Claim::take(file, {.renew = 0.5, .lapse = 120});
  ASSERT_TRUE(claim);
  make_older(file, 121);
  EXPECT_FALSE(Claim::take(file));
  EXPECT_NO_THROW(claim->check());
}

TEST(Claim, IsKeptByAProcessThatComesBackInTime) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  auto claim = Claim::take(file, {.renew = 1000, .lapse = 4});  // as if the thread that renews it had been stopped
  const auto first = fs::last_write_time(file);
  std::this_thread::sleep_for(std::chrono::milliseconds(2050));  // half of it, and two seconds before it lapses
  EXPECT_NO_THROW(claim->check());
  EXPECT_GT(fs::last_write_time(file), first);
}

TEST(Claim, OfAnotherMachineLapsesWithTime) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  claim_elsewhere(file, 115);
  EXPECT_FALSE(Claim::take(file));
  EXPECT_TRUE(is_claimed(file));
  EXPECT_EQ(owner_of(file)->host, "elsewhere");
  claim_elsewhere(file, 121);
  EXPECT_FALSE(Claim::take(file, {}, /*by_age=*/false));
  EXPECT_FALSE(is_claimed(file));
  const auto claim = Claim::take(file);
  ASSERT_TRUE(claim);
  EXPECT_EQ(owner_of(file)->process, ::getpid());
}

TEST(Claim, DamagedFilesLapseLikeOthers) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  for (const char* text : {"", "{", "{\"token\": \"../../x\"}", "[1]", "{\"process\": -1, \"machine\": 3}"}) {
    write_file(file, text);
    EXPECT_FALSE(Claim::take(file)) << text;
    make_older(file, 121);
    EXPECT_TRUE(Claim::take(file)) << text;
  }
}

TEST(Claim, OfADeadProcessOfThisMachineIsFreeAtOnce) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  const pid_t child = in_a_process([&] {
    const auto claim = Claim::take(file);
    ::pause();
  });
  wait_until([&] { return fs::exists(file); });
  EXPECT_FALSE(Claim::take(file));
  ::kill(child, SIGKILL);
  // Dead, and not yet waited for: its number is still taken.
  wait_until([&] { return Claim::take(file, {}, /*by_age=*/false).has_value(); });
  EXPECT_EQ(exit_code(child), 128 + SIGKILL);
}

// A kill ends the threads of a process one by one: until the last is gone, it may write.
TEST(Claim, OfAProcessOfWhichAThreadIsLeftIsKept) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  const pid_t child = in_a_process([&] {
    const auto claim = Claim::take(file);
    ::syscall(SYS_exit, 0);  // the first thread; the one that renews the claim stays
  });
  const auto is_dead_in_part = [&] {
    std::ifstream file_of_kernel(fmt::format("/proc/{}/stat", child));
    std::string stat;
    std::getline(file_of_kernel, stat);
    return stat.find(") Z ") != std::string::npos;
  };
  wait_until(is_dead_in_part);
  EXPECT_FALSE(Claim::take(file, {}, /*by_age=*/false));
  ::kill(child, SIGKILL);
  wait_until([&] { return Claim::take(file, {}, /*by_age=*/false).has_value(); });
  EXPECT_EQ(exit_code(child), 128 + SIGKILL);
}

TEST(Claim, AProcessThatWasStoppedSeesThatItLostIt) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  const pid_t child = in_a_process([&] {
    auto claim = Claim::take(file);
    write_file(folder / "taken", "");
    wait_until([&] { return fs::exists(folder / "go on"); });
    try {
      claim->check();
    } catch (const ClaimLost& lost) {
      write_file(folder / "lost", lost.what());
    }
  });
  wait_until([&] { return fs::exists(folder / "taken"); });
  ::kill(child, SIGSTOP);
  make_older(file, 121);
  std::optional<Claim> mine = Claim::take(file);
  ASSERT_TRUE(mine);
  const std::string token = owner_of(file)->token;
  write_file(folder / "go on", "");
  ::kill(child, SIGCONT);
  EXPECT_EQ(exit_code(child), 0);
  EXPECT_THAT(read_file(folder / "lost"), ::testing::HasSubstr(fmt::format("process {} on ", ::getpid())));
  EXPECT_NO_THROW(mine->check());  // and its end did not remove ours
  EXPECT_EQ(owner_of(file)->token, token);
}

TEST(Claim, ThatSomebodyRemovesIsLostAtOnce) {
  const TemporaryFolder folder;
  auto claim = Claim::take(folder / claim_name);
  EXPECT_NO_THROW(claim->check());
  fs::remove(folder / claim_name);
  EXPECT_THROW(claim->check(), ClaimLost);
}

TEST(Claim, InPlaceOfWhichThereIsNoFileIsRefused) {
  const TemporaryFolder folder;
  fs::create_directory(folder / claim_name);
  expect_error(Fault::input, "is a link, a folder or a device", [&] { Claim::take(folder / claim_name); });
  fs::remove(folder / claim_name);
  fs::create_symlink("elsewhere", folder / claim_name);
  expect_error(Fault::input, "is a link, a folder or a device", [&] { Claim::take(folder / claim_name); });
  fs::remove(folder / claim_name);
  ASSERT_EQ(::mkfifo((folder / claim_name).c_str(), 0600), 0);
  expect_error(Fault::input, "is a link, a folder or a device", [&] { Claim::take(folder / claim_name); });
}

TEST(Claim, AStaleTemporaryFileDoesNoHarm) {
  const TemporaryFolder folder;
  const fs::path file = folder / claim_name;
  write_file(folder / fmt::format(".{}.{}.7.tmp", claim_name, ::getpid()), "{");
  EXPECT_TRUE(Claim::take(file));
  claim_elsewhere(file, 121);
  claim_elsewhere(folder / fmt::format(".{}.17.0.tmp", claim_name), 5, "18");  // somebody is taking it over just now
  EXPECT_FALSE(Claim::take(file));
  EXPECT_EQ(owner_of(file)->token, "17");
}

TEST(Claim, AFolderThatCannotBeWrittenIsAnError) {
  const TemporaryFolder folder;
  expect_error(Fault::runtime, claim_name, [&] { Claim::take(folder / "missing" / claim_name); });
}

RunDescription shared_run(int rate = 1) {
  RunDescription description{"measure", {{"rate", rate}}, nlohmann::ordered_json::object(), RunWrites::as_it_goes};
  description.shared = true;
  return description;
}

RunFolderOptions joining(const fs::path& out) {
  RunFolderOptions options{out};
  options.join = true;
  return options;
}

TEST(SharedRun, OthersJoinWithTheSameConfiguration) {
  const TemporaryFolder folder;
  const RunFolder first(joining(folder / "run"), shared_run());
  const std::string manifest = read_file(folder / "run" / manifest_name);
  const RunFolder second(joining(folder / "run"), shared_run());
  const RunFolder third({folder / "run", false, /*resume=*/true}, shared_run());
  EXPECT_EQ(read_file(folder / "run" / manifest_name), manifest);
  expect_error(Fault::input, "is a run of another configuration: rate (was 1, now 2)",
               [&] { RunFolder(joining(folder / "run"), shared_run(2)); });
  expect_error(Fault::input, "exists; go on with --resume, replace it",
               [&] { RunFolder({folder / "run"}, shared_run()); });
  expect_error(Fault::input, "another process is writing it", [&] { RunFolder({folder / "run", true}, shared_run()); });
  expect_error(Fault::input, "another process is writing it", [&] { RunFolder::add_to(folder / "run"); });
}

TEST(SharedRun, WhoeverWaitsSaysOnceForWhom) {
  const TemporaryFolder folder;
  const fs::path claim = folder / "run" / claim_name;
  static_cast<void>(RunFolder(joining(folder / "run"), shared_run()));
  claim_elsewhere(claim, 1);
  std::vector<std::string> said;
  RunDescription description = shared_run();
  description.say = [&](const std::string& text) {
    said.push_back(text);
    claim_elsewhere(claim, 121);  // it is silent from now on
  };
  const RunFolder run(joining(folder / "run"), description);
  EXPECT_THAT(said,
              testing::ElementsAre(testing::StartsWith("waits for process 1 on elsewhere, which opens or ends ")));
}

TEST(SharedRun, WhoeverIsRefusedHearsThatHeCanJoin) {
  const TemporaryFolder folder;
  const fs::path out = folder / "run", training = out / "seed_3" / "QK";
  const RunFolder first(joining(out), shared_run());
  fs::create_directories(training);
  claim_elsewhere(training / claim_name, 1);
  const std::string text = "process 1 on elsewhere trains it: --resume joins";
  expect_error(Fault::input, "exists; go on with --resume, or choose another folder; " + text,
               [&] { check_out({out}, "measure", RunWrites::as_it_goes); });
  expect_error(Fault::input, "choose another folder; " + text, [&] { RunFolder({out, true}, shared_run()); });
  expect_error(Fault::input, "another process is writing it; wait for it or choose another folder",
               [&] { RunFolder::add_to(out); });
  claim_elsewhere(training / claim_name, 121);  // silent: nobody is there to be joined
  expect_error(Fault::input, "exists; go on with --resume, replace it",
               [&] { check_out({out}, "measure", RunWrites::as_it_goes); });
}

TEST(SharedRun, SaysWhatTheManifestSaidBefore) {
  const TemporaryFolder folder;
  RunDescription two = shared_run(), one = shared_run();
  two.facts["threads"] = 2;
  one.facts["threads"] = 1;
  {
    const RunFolder first(joining(folder / "run"), two);
    EXPECT_EQ(threads_in(first.before()), std::nullopt);
  }
  const RunFolder second(joining(folder / "run"), one);
  EXPECT_EQ(threads_in(second.before()), 2);
  EXPECT_EQ(threads_in(read_manifest(folder / "run")), 1);
}

// The lock that a process has of a file, as its number.
int descriptor_of(const fs::path& file) {
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    if (fs::read_symlink(entry.path(), error) == file) return std::stoi(entry.path().filename().string());
  }
  return -1;
}

// flock(2) gives the lock up before it takes another kind of it. Here a second process gets it alone in between, while
// the first one has the claim.
TEST(SharedRun, TwoThatOpenItAtOnceDoNotWaitForOneAnother) {
  if (__tsan_init != nullptr)
    GTEST_SKIP() << "ThreadSanitizer ends a process that starts threads behind a fork of several";
  const TemporaryFolder folder;
  const fs::path out = folder / "run", lock = fs::canonical(folder.path()) / "run" / lock_name;
  { const RunFolder before(joining(out), shared_run()); }
  pid_t child = -1;
  RunDescription description = shared_run();
  description.in_current_words = [&](nlohmann::ordered_json config) {
    ::flock(descriptor_of(lock), LOCK_UN);
    child = in_a_process([&] {
      ::close(descriptor_of(lock));
      const RunFolder second(joining(out), shared_run());
    });
    const Descriptor probe(::open(lock.c_str(), O_RDONLY | O_CLOEXEC));
    wait_until([&] {
      siginfo_t ended{};
      ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
      const bool is_there = ::flock(probe.get(), LOCK_EX | LOCK_NB) != 0 || ended.si_pid == child;
      ::flock(probe.get(), LOCK_UN);
      return is_there;
    });
    return config;
  };
  { const RunFolder first(joining(out), description); }
  EXPECT_EQ(exit_code(child), 0);
}

// A claim that is not seen would be one that nobody has.
TEST(SharedRun, AClaimThatCannotBeSeenIsAnError) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "QK");
  fs::create_symlink(claim_name, folder / "QK" / claim_name);  // a link to itself
  expect_error(Fault::runtime, "claim.json: Too many levels of symbolic links", [&] { claims_in(folder.path()); });
}

TEST(SharedRun, HalfWrittenFilesOfOthersStayWhileTheyWork) {
  const TemporaryFolder folder;
  const fs::path half = folder / "run" / "QK" / ".results.json.17.0.tmp";
  { const RunFolder first(joining(folder / "run"), shared_run()); }
  fs::create_directories(half.parent_path());
  write_file(half, "{");
  claim_elsewhere(folder / "run" / "QK" / claim_name, 1);  // on a machine whose locks are not seen here
  { const RunFolder second(joining(folder / "run"), shared_run()); }
  EXPECT_TRUE(fs::exists(half));
  expect_error(Fault::input, "another process is writing it", [&] { RunFolder::add_to(folder / "run"); });
  claim_elsewhere(folder / "run" / "QK" / claim_name, 121);
  { const RunFolder third(joining(folder / "run"), shared_run()); }
  EXPECT_FALSE(fs::exists(half));
  EXPECT_FALSE(fs::exists(folder / "run" / "QK" / claim_name));
}

TEST(SharedRun, ItsEndRemovesWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  const fs::path training = folder / "run" / "QK", half = training / ".part-00001.parquet.17.0.tmp";
  const fs::path half_of_a_table = training / "steps.parquet" / ".part-00002.parquet.17.1.tmp";
  const fs::path begun = training / ".claim.json.17.5.tmp", late = training / ".claim.json.17.6.tmp";
  RunFolder run(joining(folder / "run"), shared_run());
  fs::create_directories(training);
  fs::create_directories(half_of_a_table.parent_path());
  for (const fs::path& file : {half, half_of_a_table}) write_file(file, "PAR1");
  claim_elsewhere(begun, 5);  // by a process that sees in a moment that nothing is left to claim
  claim_elsewhere(late, 121);
  run.hold();
  run.finish(RunStatus::complete, {});
  EXPECT_FALSE(fs::exists(half));
  EXPECT_FALSE(fs::exists(half_of_a_table));
  EXPECT_TRUE(fs::exists(begun));
  EXPECT_FALSE(fs::exists(late));
}

TEST(SharedRun, ItsEndLeavesTheClaimsOfOthers) {
  const TemporaryFolder folder;
  const fs::path training = folder / "run" / "QK";
  RunFolder run(joining(folder / "run"), shared_run());
  fs::create_directories(training);
  const auto claim = Claim::take(training / claim_name);
  run.hold();
  run.finish(RunStatus::complete, {});
  EXPECT_TRUE(is_claimed(training / claim_name));
}

TEST(SharedRun, AFailureBehindItsEndLeavesItComplete) {
  const TemporaryFolder folder;
  RunFolder first(joining(folder / "run"), shared_run()), second(joining(folder / "run"), shared_run());
  second.hold();
  second.finish(RunStatus::complete, {{"verdict", "gamma"}});
  const std::string complete = read_file(folder / "run" / manifest_name);
  EXPECT_THROW(first.live([]() -> int { throw Error(Fault::runtime, "it was paused"); }), Error);
  EXPECT_EQ(read_file(folder / "run" / manifest_name), complete);
}

// Whoever takes a training over removes what the other one may yet rename.
TEST(SharedRun, LeftoversOfOneTrainingGo) {
  const TemporaryFolder folder;
  const fs::path run = folder / "run", half = ".part-00001.parquet.17.0.tmp";
  const RunFolder open(joining(run), shared_run());
  for (const char* training : {"QK", "QK_frozen"}) {
    fs::create_directories(run / training / "checkpoints" / ".partial-step-000005");
    write_file(run / training / half, "PAR1");
    write_file(run / training / "checkpoints" / ".partial-step-000005" / "state.json", "{");
  }
  open.remove_leftovers("QK");
  EXPECT_FALSE(fs::exists(run / "QK" / half));
  EXPECT_FALSE(fs::exists(run / "QK" / "checkpoints" / ".partial-step-000005"));
  EXPECT_TRUE(fs::exists(run / "QK_frozen" / half));
  EXPECT_TRUE(fs::exists(run / "QK_frozen" / "checkpoints" / ".partial-step-000005"));
}

TEST(SharedRun, LeftoversAreLookedForWhileOthersRenameFolders) {
  const TemporaryFolder folder;
  const fs::path checkpoints = folder / "QK" / "checkpoints";
  fs::create_directories(checkpoints / ".partial-step-000005");
  write_file(checkpoints / ".partial-step-000005" / "state.json", "{");
  write_file(folder / "QK" / ".part-00001.parquet.17.0.tmp", "PAR1");
  const std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      fs::rename(checkpoints / ".partial-step-000005", checkpoints / "step-000005");
      fs::rename(checkpoints / "step-000005", checkpoints / ".partial-step-000005");
    }
  });
  for (int i = 0; i < 2000; ++i)
    EXPECT_THAT(leftovers(folder.path(), RunNames()), ::testing::Contains(fs::path("QK/.part-00001.parquet.17.0.tmp")));
}

TEST(SharedRun, TheLastToStopSaysHowItEnded) {
  const TemporaryFolder folder;
  const auto status = [&] { return read_manifest(folder / "run").at("status").get<std::string>(); };
  const auto stop = [](RunFolder& run) {
    EXPECT_THROW(run.live([]() -> int { throw Error(Fault::interrupted, "interrupted"); }), Error);
  };
  RunFolder first(joining(folder / "run"), shared_run()), second(joining(folder / "run"), shared_run());
  fs::create_directories(folder / "run" / "QK");
  {
    const auto claim = Claim::take(folder / "run" / "QK" / claim_name);
    stop(first);
    EXPECT_EQ(status(), "running");
  }
  stop(second);
  EXPECT_EQ(status(), "interrupted");
}

// A worker whose run fails ends, and another one goes on in its place. Only the last one puts back what was replaced.
TEST(SharedRun, OneThatLeavesItToOthersPutsNothingBack) {
  const TemporaryFolder folder;
  const fs::path manifest = folder / "run" / manifest_name;
  const auto fail = [](RunFolder& run) {
    EXPECT_THROW(run.live([]() -> int { throw Error(Fault::runtime, "no memory"); }), Error);
  };
  {
    RunFolder before(joining(folder / "run"), shared_run());
    before.hold();
    before.finish(RunStatus::complete, {});
  }
  const std::string complete = read_file(manifest);
  {
    RunFolder first({folder / "run", /*overwrite=*/true}, shared_run());
    first.leave_to_others();
    fail(first);
  }
  EXPECT_EQ(read_manifest(folder / "run").at("status"), "running");
  RunFolder second(joining(folder / "run"), shared_run());
  fail(second);
  EXPECT_EQ(read_file(manifest), complete);
}

TEST(SharedRun, NothingIsPutBackUnderAProcessThatJoined) {
  const TemporaryFolder folder;
  const auto status = [&] { return read_manifest(folder / "run").at("status").get<std::string>(); };
  const auto fail = [](RunFolder& run) {
    EXPECT_THROW(run.live([]() -> int { throw Error(Fault::runtime, "no memory"); }), Error);
  };
  {
    RunFolder before(joining(folder / "run"), shared_run());
    before.hold();
    before.finish(RunStatus::complete, {});
  }
  auto first = std::make_unique<RunFolder>(RunFolderOptions{folder / "run", /*overwrite=*/true}, shared_run());
  RunFolder second(joining(folder / "run"), shared_run());  // it has no claim yet
  fail(*first);
  first.reset();
  EXPECT_EQ(status(), "failed");
  fail(second);
  EXPECT_EQ(status(), "complete");
}

TEST(SharedRun, WhoeverWorksOnItSaysThatItRuns) {
  const TemporaryFolder folder;
  RunFolder first(joining(folder / "run"), shared_run()), second(joining(folder / "run"), shared_run());
  EXPECT_THROW(first.live([]() -> int { throw Error(Fault::runtime, "no memory"); }), Error);
  EXPECT_EQ(read_manifest(folder / "run").at("status"), "failed");  // the second one has no claim yet
  second.note_running();
  const auto manifest = read_manifest(folder / "run");
  EXPECT_EQ(manifest.at("status"), "running");
  EXPECT_FALSE(manifest.contains("error"));
}

}  // namespace
}  // namespace headscope
