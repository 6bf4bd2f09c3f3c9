// What the operations between ranks give, against closed forms, and whom errors name.
#include "ranks/ranks.h"

#include <gtest/gtest.h>

#include "core/console.h"
#include "ranks/ending.h"
#include "support/rank_threads.h"

namespace headscope {
namespace {

using test::errors_of_ranks;
using test::on_ranks;

// Row i of rank r: 100 r + 10 i + (0, 1, 2).
at::Tensor rows_of(int rank, int size) {
  return 100.0 * rank + 10.0 * at::arange(size, at::kFloat).view({size, 1}) + at::arange(3, at::kFloat);
}

TEST(Ranks, OneProcess_ConnectsNothingAndGetsItsOwn) {
  const Ranks& ranks = Ranks::one();
  const at::Tensor own = at::arange(3, at::kFloat);
  EXPECT_FALSE(ranks.connected());
  EXPECT_TRUE(at::equal(ranks.all_gather(own), own.unsqueeze(0)));
  EXPECT_TRUE(at::equal(ranks.all_reduce(own), own));
  EXPECT_EQ(ranks.from_first("name", [] { return "said"; }), "said");
}

TEST(Ranks, GiveWhatTheirNamesSay) {
  for (const int size : {1, 2, 3, 4}) {
    on_ranks(size, {.backend = RanksBackend::gloo}, [size](const Ranks& ranks) {
      const int rank = ranks.rank();
      const at::Tensor own = rows_of(rank, 1)[0];
      const at::Tensor all = ranks.all_gather(own);
      for (int other = 0; other < size; ++other) EXPECT_TRUE(at::equal(all[other], rows_of(other, 1)[0]));

      const at::Tensor rows = at::full({size, 3}, -1.0F);
      rows[rank].copy_(own);
      ranks.all_gather_rows(rows);
      EXPECT_TRUE(at::equal(rows, all));

      // Of rank r, r + 1 numbers.
      std::vector<int> visited;
      ranks.gather(at::arange(rank + 1), [&](int other, const at::Tensor& of_other) {
        visited.push_back(other);
        EXPECT_TRUE(at::equal(of_other, at::arange(other + 1)));
      });
      EXPECT_EQ(visited.size(), rank == 0 ? size : 0);

      // Two at once, which end in another order.
      Ranks::Begun exchanged = ranks.begin_all_to_all(rows_of(rank, size));
      Ranks::Begun summed = ranks.begin_reduce_scatter(rows_of(rank, size));
      const at::Tensor sum = ranks.finish(summed), received = ranks.finish(exchanged);
      for (int other = 0; other < size; ++other) EXPECT_TRUE(at::equal(received[other], rows_of(other, size)[rank]));
      EXPECT_TRUE(at::equal(sum, received.sum(0)));  // whole numbers: exact in any order
    });
  }
}

TEST(EndProcessAfter, EndsOneThatHangs_WithTheMessageThatItHas) {
  const auto hang = [](const std::string& message) {
    end_process_after(0.1, message);
    std::this_thread::sleep_for(std::chrono::seconds(60));
  };
  EXPECT_EXIT(hang("rank 2 is gone"), testing::ExitedWithCode(1), "^headscope: rank 2 is gone\n$");
  EXPECT_EXIT(hang(""), testing::ExitedWithCode(1), "^$");
}

// The messages, without those of ranks that leave it to another one. Every rank must throw.
std::vector<std::string> messages_of(const std::vector<std::exception_ptr>& errors, Fault fault) {
  std::vector<std::string> messages;
  for (const std::exception_ptr& error : errors) {
    EXPECT_TRUE(error);
    try {
      if (error) std::rethrow_exception(error);
    } catch (const Error& caught) {
      EXPECT_EQ(caught.fault(), fault) << caught.what();
      if (*caught.what() != '\0') messages.emplace_back(caught.what());
    }
  }
  return messages;
}

// Wherever the others are by then: in an operation, or at the end. Long before the timeout of 300 s.
TEST(Ranks, WhenOneFailsByItself_ItAloneSaysIt) {
  const at::Tensor one = at::ones({1});
  const std::function<void(const Ranks&)> works[] = {
      [&](const Ranks& ranks) { static_cast<void>(ranks.all_gather(one)); },
      [](const Ranks& ranks) { ranks.last_barrier(); },
      [](const Ranks&) { throw AgreedError(Fault::runtime, "all stop"); },
      [](const Ranks& ranks) { static_cast<void>(ranks.from_first("word", [] { return "said late"; })); }};
  for (const auto& work : works) {
    for (const int failing : {0, 1}) {
      const auto start = Clock::now();
      const auto errors = errors_of_ranks(3, {.backend = RanksBackend::gloo}, [&](const Ranks& ranks) {
        ranks.live([&] {
          if (ranks.rank() == failing) fail_runtime("no space on the disk");
          work(ranks);
          ranks.last_barrier();
        });
      });
      const std::vector<std::string> messages = messages_of(errors, Fault::runtime);
      ASSERT_EQ(messages.size(), 1U) << fmt::format("{}", fmt::join(messages, "; "));
      EXPECT_EQ(messages[0], fmt::format("rank {} of 3: no space on the disk", failing));
      EXPECT_LT(seconds_since(start), 60);
    }
  }
}

// Before any of them connects: none waits for one that has no device.
TEST(Ranks, WhenOneHasNoDevice_ItAloneSaysIt) {
  const auto start = Clock::now();
  const auto errors = errors_of_ranks(
      3, {.backend = RanksBackend::gloo}, [](const Ranks&) {},
      [](int rank) -> RankDevice {
        if (rank == 1) fail_runtime("the GPU is busy");
        return {};
      });
  EXPECT_EQ(messages_of(errors, Fault::runtime), std::vector<std::string>({"rank 1 of 3: the GPU is busy"}));
  EXPECT_LT(seconds_since(start), 60);
}

// They would wait for one another without end.
TEST(Ranks, OfOtherBackends_AreNamedAsBadInput) {
  const auto errors = errors_of_ranks(
      2, {}, [](const Ranks&) {},
      [](int rank) {
        return RankDevice{rank == 0 ? at::kCPU : at::kCUDA, "a GPU"};
      });
  const std::vector<std::string> messages = messages_of(errors, Fault::input);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_TRUE(messages[0].starts_with("rank 1 of 2 connects through nccl, and rank 0 through gloo")) << messages[0];
}

TEST(Ranks, ThatShareAGpuThroughNccl_AreNamedAsBadInput) {
  const auto errors = errors_of_ranks(
      3, {}, [](const Ranks&) {},
      [](int rank) {
        return RankDevice{at::kCUDA, rank == 0 ? "one GPU" : "another GPU"};
      });
  const std::vector<std::string> messages = messages_of(errors, Fault::input);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_TRUE(messages[0].starts_with("rank 1 and rank 2 of 3 have the same GPU, and NCCL needs one for each"))
      << messages[0];
}

// On a GPU nothing breaks when another rank is gone: what is queued there waits on. A fifth of the timeout is 12 s.
TEST(Ranks, WhileTheyWaitForTheirGpu_NoticeOneThatIsGone) {
  for (const int gone : {0, 1}) {
    SCOPED_TRACE(gone);
    const auto start = Clock::now();
    const auto errors = errors_of_ranks(3, {.backend = RanksBackend::gloo, .timeout = 60}, [gone](const Ranks& ranks) {
      if (ranks.rank() == gone) fail_runtime("it is gone and tells nobody");
      ranks.live([&] { ranks.wait_until([] { return false; }); });
    });
    std::vector<std::string> messages = messages_of(errors, Fault::runtime);
    std::erase(messages, "it is gone and tells nobody");
    ASSERT_EQ(messages.size(), 1U) << fmt::format("{}", fmt::join(messages, "; "));
    EXPECT_NE(messages[0].find(fmt::format("rank {} of 3 does not answer", gone)), std::string::npos) << messages[0];
    EXPECT_LT(seconds_since(start), 50);
  }
}

TEST(Ranks, WithOtherFacts_AreNamedOnceAsBadInput) {
  for (const std::string key : {"version", "data"}) {
    const auto errors = errors_of_ranks(3, {.backend = RanksBackend::gloo}, [&key](const Ranks& ranks) {
      nlohmann::ordered_json facts = {{"version", "1.0"}, {"data", "abc"}};
      if (ranks.rank() == 2) facts[key] = "other";
      ranks.live([&] { ranks.compare(facts); });
    });
    const std::vector<std::string> messages = messages_of(errors, Fault::input);
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_TRUE(messages[0].starts_with("rank 2 of 3: " + key + " is \"other\", and ")) << messages[0];
  }
}

}  // namespace
}  // namespace headscope
