#include "core/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <vector>

#include "core/interrupt.h"

namespace headscope {
namespace {

TEST(ParallelFor, CallsEachJobOnce) {
  for (const std::size_t workers : {1U, 2U, 7U, 100U}) {
    std::vector<std::atomic<int>> calls(57);
    parallel_for(calls.size(), workers, [&](std::size_t index) { ++calls[index]; });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
  }
  parallel_for(0, 4, [](std::size_t) { FAIL(); });
}

TEST(ParallelFor, TheFirstExceptionReachesTheCallerAndStopsTheRest) {
  std::atomic<int> calls = 0;
  const auto job = [&](std::size_t index) {
    ++calls;
    if (index == 3) throw std::runtime_error("job 3");
  };
  EXPECT_THROW(
      {
        try {
          parallel_for(100000, 2, job);
        } catch (const std::runtime_error& error) {
          EXPECT_STREQ(error.what(), "job 3");
          throw;
        }
      },
      std::runtime_error);
  EXPECT_LT(calls, 100000);
}

// As timeout(1) sends them: to the process, and to its group.
TEST(Interrupt, SignalsAtOnceAreOneRequest) {
  const InterruptGuard guard;
  sigset_t both{}, before{};
  sigemptyset(&both);
  sigaddset(&both, SIGTERM);
  sigaddset(&both, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &both, &before);  // so that they come at once
  std::raise(SIGTERM);
  std::raise(SIGINT);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_TRUE(interrupt_requested());
}

TEST(Interrupt, ASecondRequestEndsTheProcess) {
  const auto asked_twice = [] {
    const InterruptGuard guard;
    std::raise(SIGTERM);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_of_one_request));
    std::raise(SIGTERM);
  };
  EXPECT_EXIT(asked_twice(), testing::KilledBySignal(SIGTERM), "");
}

TEST(Interrupt, ASignalSetsTheFlagWhileTheGuardLives) {
  {
    const InterruptGuard guard;
    EXPECT_FALSE(interrupt_requested());
    std::raise(SIGTERM);
    EXPECT_TRUE(interrupt_requested());
  }
  const InterruptGuard again;
  EXPECT_FALSE(interrupt_requested());
}

TEST(Threads, OfTheEnvironmentAreAWholeNumber) {
  for (const auto& [text, names] : {std::pair("4", true),
                                    {"4,2", true},
                                    {"", false},
                                    {"abc", false},
                                    {"0", false},
                                    {"-5", false},
                                    {"1.5", false}}) {
    ::setenv("OMP_NUM_THREADS", text, /*replace=*/1);
    EXPECT_EQ(environment_names_threads(), names) << text;
  }
  ::unsetenv("OMP_NUM_THREADS");
  EXPECT_FALSE(environment_names_threads());
}

}  // namespace
}  // namespace headscope
