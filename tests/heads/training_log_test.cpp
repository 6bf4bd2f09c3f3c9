#include "heads/training_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/atomic_file.h"
#include "heads/loss_spikes.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::MatchesRegex;

std::vector<std::string> kinds_and_steps(const std::vector<TrainingEvent>& events) {
  std::vector<std::string> texts;
  for (const TrainingEvent& event : events) texts.push_back(fmt::format("{} {}", event.kind, event.moment.step));
  return texts;
}

TEST(Events, AreReadAsTheyWereAppended) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_events(folder.path()).empty());
  EventLog log(folder.path(), std::nullopt);
  EXPECT_TRUE(log.before().empty());
  log.append("start", {}, "12 steps");
  log.append("spike", {7, 448}, "a \"loss\"\nof two lines");
  const auto events = read_events(folder.path());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_THAT(events[0].time, MatchesRegex("2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z"));
  EXPECT_EQ(events[1].moment, (Moment{7, 448}));
  EXPECT_EQ(events[1].text, "a \"loss\"\nof two lines");
  const std::string text = read_file(folder / "events.jsonl");
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

// A kill may end the file at any byte.
TEST(Events, OfAFileThatEndsAnywhereAreItsWholeLines) {
  const TemporaryFolder folder;
  {
    EventLog log(folder.path(), std::nullopt);
    for (std::int64_t step = 0; step < 3; ++step) log.append("warning", {step, step}, "é");
  }
  const std::string whole = read_file(folder / "events.jsonl");
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::string part = whole.substr(0, size);
    const auto lines = static_cast<std::size_t>(std::ranges::count(part, '\n'));
    write_file(folder / "events.jsonl", part);
    EXPECT_EQ(read_events(folder.path()).size(), lines) << size;
    EventLog(folder.path(), 0).append("resume", {}, "");
    const auto events = read_events(folder.path());
    ASSERT_EQ(events.size(), lines + 1) << size;
    EXPECT_EQ(events.back().kind, "resume");
  }
}

TEST(Events, ThatWillHappenAgainAreRemoved) {
  const TemporaryFolder folder;
  const auto write = [&] {
    write_file(folder / "events.jsonl", "");
    EventLog log(folder.path(), std::nullopt);
    log.append("start", {0, 0}, "");
    log.append("probe", {0, 0}, "");
    log.append("checkpoint", {4, 4}, "");
    log.append("warning", {5, 5}, "");
    log.append("spike", {5, 5}, "");
    log.append("probe", {6, 6}, "");
    log.append("end", {7, 7}, "");
  };
  write();
  const EventLog from_4(folder.path(), 4);
  EXPECT_THAT(kinds_and_steps(from_4.before()),
              ElementsAre("start 0", "probe 0", "checkpoint 4", "warning 5", "end 7"));
  EXPECT_EQ(read_events(folder.path()), from_4.before());
  EXPECT_EQ(from_4.last_step("checkpoint"), 4);
  EXPECT_EQ(from_4.last_step("spike"), std::nullopt);
  write();
  EXPECT_THAT(kinds_and_steps(EventLog(folder.path(), std::nullopt).before()),
              ElementsAre("start 0", "warning 5", "end 7"));
}

TEST(Events, AreNotWrittenThroughALink) {
  const TemporaryFolder folder;
  write_file(folder / "mine", "mine");
  fs::create_symlink(folder / "mine", folder / "events.jsonl");
  expect_error(Fault::input, "events.jsonl", [&] { EventLog(folder.path(), 0); });
  EXPECT_EQ(read_file(folder / "mine"), "mine");
}

TEST(ProgressOfTraining, IsWrittenAtPhasesAndOnceASecond) {
  const TemporaryFolder folder;
  int asked = 0;
  EXPECT_FALSE(read_progress(folder.path()));
  ProgressFile file(folder.path(), {4, 400}, missing, 12, [&] { ++asked; });
  EXPECT_FALSE(read_progress(folder.path()));
  file.enter(phase::training);
  auto progress = read_progress(folder.path());
  ASSERT_TRUE(progress);
  EXPECT_EQ(progress->phase, "training");
  EXPECT_EQ(progress->moment, (Moment{4, 400}));
  EXPECT_EQ(progress->steps, 12);
  for (const double unknown : {progress->loss, progress->tokens_per_s, progress->seconds_left})
    EXPECT_TRUE(std::isnan(unknown));
  for (std::int64_t step = 5; step <= 8; ++step) file.add({step, step * 100}, 2.5, 100, 0.25);
  EXPECT_EQ(asked, 1);  // not a second later
  file.enter(phase::training);
  EXPECT_EQ(asked, 1);
  file.enter(phase::probe);
  EXPECT_EQ(asked, 2);
  progress = read_progress(folder.path());
  EXPECT_EQ(progress->phase, "probe");
  EXPECT_EQ(progress->moment, (Moment{8, 800}));
  EXPECT_EQ(progress->loss, 2.5);
  EXPECT_EQ(progress->tokens_per_s, 400);
  EXPECT_GE(progress->seconds_left, 0);  // four of eight steps: as long as the test took until then
  EXPECT_LT(progress->seconds_left, 60);
  set_phase(folder.path(), phase::done);
  progress = read_progress(folder.path());
  EXPECT_EQ(progress->phase, "done");
  EXPECT_EQ(progress->moment, (Moment{8, 800}));
  EXPECT_EQ(progress->seconds_left, 0);
}

TEST(ProgressOfTraining, ThatIsDamagedIsNone) {
  const TemporaryFolder folder;
  set_phase(folder.path(), phase::done);
  EXPECT_FALSE(fs::exists(folder / "progress.json"));
  for (const char* text : {"", "{", "[]", "{\"time\": 3}", "{\"time\": \"x\", \"phase\": \"y\"}"}) {
    write_file(folder / "progress.json", text);
    EXPECT_FALSE(read_progress(folder.path())) << text;
  }
}

// A folder that cannot be written to.
TEST(ProgressOfTraining, DoesNotStopATrainingThatCannotWriteIt) {
  const TemporaryFolder folder;
  ProgressFile file(folder / "nowhere", {}, missing, 12, [] {});
  EXPECT_NO_THROW(file.enter(phase::training));
  expect_error(Fault::runtime, "moved", [&] {
    ProgressFile(folder.path(), {}, missing, 12, [] { fail_runtime("moved"); }).enter(phase::training);
  });
  EXPECT_FALSE(fs::exists(folder / "progress.json"));
}

// 50 losses of 1.99 and 50 of 2.01: the median is 2, MAD 0.01. The border is 2 + 6 · 0.014826 = 2.088956.
std::vector<double> two_values(std::size_t n) {
  std::vector<double> losses;
  for (std::size_t i = 0; i < n; ++i) losses.push_back(i % 2 == 0 ? 1.99 : 2.01);
  return losses;
}

TEST(LossSpikes, BeginSixDeviationsAboveTheMedian) {
  EXPECT_FALSE(LossSpikes(two_values(100)).add(101, 2.0889));
  const auto spike = LossSpikes(two_values(100)).add(101, 2.0890);
  ASSERT_TRUE(spike);
  EXPECT_NEAR(spike->median, 2, 1e-12);
  EXPECT_NEAR(spike->deviations, 0.089 / 0.014826, 1e-9);
  EXPECT_FALSE(LossSpikes(two_values(99)).add(100, 100));   // too few for the rule
  EXPECT_FALSE(LossSpikes(two_values(100)).add(101, 0.1));  // below
}

// Losses that hardly vary: 1 % of the median.
TEST(LossSpikes, AreNotNoiseInTheLastDigits) {
  const std::vector<double> flat(100, 2.0);
  EXPECT_FALSE(LossSpikes(flat).add(101, 2.0199));
  const auto spike = LossSpikes(flat).add(101, 2.0201);
  ASSERT_TRUE(spike);
  EXPECT_TRUE(std::isinf(spike->deviations));
}

TEST(LossSpikes, AreReportedOnceInAHundredSteps) {
  LossSpikes spikes(two_values(100));
  std::vector<std::int64_t> found;
  for (std::int64_t step = 101; step <= 400; ++step)  // every tenth loss is high, and the medians stay
    if (spikes.add(step, step % 10 == 1 ? 5.0 : step % 2 == 0 ? 1.99 : 2.01)) found.push_back(step);
  EXPECT_THAT(found, ElementsAre(101, 201, 301));
}

TEST(LossSpikes, AreTheSameForARunThatGoesOn) {
  std::mt19937 generator(3);
  std::normal_distribution<double> noise;
  std::vector<double> losses;
  for (int i = 0; i < 500; ++i) losses.push_back(2 + 0.1 * noise(generator) + (i % 47 == 0 ? 3 : 0));
  const auto found_in = [&](LossSpikes spikes, std::size_t from) {
    std::vector<std::int64_t> found;
    for (std::size_t i = from; i < losses.size(); ++i)
      if (spikes.add(static_cast<std::int64_t>(i), losses[i])) found.push_back(static_cast<std::int64_t>(i));
    return found;
  };
  const auto whole = found_in(LossSpikes(), 0);
  ASSERT_GE(whole.size(), 3U);
  for (const std::size_t stop : {30U, 100U, 250U, 333U}) {
    std::optional<std::int64_t> last;
    std::vector<std::int64_t> later;
    for (const std::int64_t step : whole) {
      if (step < static_cast<std::int64_t>(stop))
        last = step;
      else
        later.push_back(step);
    }
    EXPECT_EQ(found_in(LossSpikes(std::span(losses).first(stop), last), stop), later) << stop;
  }
}

// A loss that falls quickly, then noise: none.
TEST(LossSpikes, AreNotInAnOrdinaryCourse) {
  std::mt19937 generator(1);
  std::normal_distribution<double> noise;
  LossSpikes spikes;
  for (int i = 0; i < 20000; ++i)
    EXPECT_FALSE(spikes.add(i, 2 + 6 * std::exp(-i / 50.0) + 0.05 * noise(generator))) << i;
}

}  // namespace
}  // namespace headscope
