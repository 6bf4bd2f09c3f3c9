// Which ranks are missed after a connection broke. The ranks are objects of one process around a store in memory.
#include "ranks/liveness.h"

#include <gmock/gmock.h>

#include <future>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "core/console.h"
#include "ranks/store_text.h"

namespace headscope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

RankPlace rank_of_3(int rank) {
  RankPlace place;
  place.rank = rank;
  place.size = 3;
  return place;
}

class Liveness : public testing::Test {
 protected:
  // A minute at most.
  void wait_for_beats(int rank, std::int64_t count) {
    for (int i = 0; i < 6000 && heartbeats_of(store_, rank) < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_GE(heartbeats_of(store_, rank), count);
  }
  C10dStore store_ = c10::make_intrusive<c10d::HashStore>();
};

TEST_F(Liveness, ARankThatIsAtWorkIsNotMissedAndOneSpeaks) {
  const Heartbeat first(store_, 0), second(store_, 1);  // rank 0 computes and notices nothing; rank 2 is dead
  const Answers answers = ask_all(store_, rank_of_3(1), Broken::closed);
  EXPECT_THAT(answers.missing, ElementsAre(2));
  EXPECT_TRUE(answers.speaks);
  const Answers of_another = ask_all(store_, rank_of_3(0), Broken::closed);
  EXPECT_THAT(of_another.missing, ElementsAre(2));  // as the first one found; its own question would take as long
  EXPECT_FALSE(of_another.speaks);
}

TEST_F(Liveness, AfterATimeoutARankThatOnlyBeatsIsMissed) {
  const Heartbeat first(store_, 0), second(store_, 1);
  EXPECT_THAT(ask_all(store_, rank_of_3(1), Broken::timeout).missing, ElementsAre(0, 2));
}

TEST_F(Liveness, WhereAllAnswerNobodyIsMissed) {
  const Heartbeat first(store_, 0), second(store_, 1), third(store_, 2);
  EXPECT_THAT(ask_all(store_, rank_of_3(2), Broken::closed).missing, IsEmpty());
}

TEST_F(Liveness, WhatARankThatFailedLeftIsHeard) {
  store_->set(failure_key, bytes_of("no space"));
  const Answers answers = ask_all(store_, rank_of_3(1), Broken::closed);
  EXPECT_EQ(answers.failure, "no space");
  EXPECT_THAT(answers.missing, IsEmpty());  // rank 0 keeps the store until all others have read it
}

TEST_F(Liveness, ABeatCountsUntilItIsStopped) {
  Heartbeat beat(store_, 1);
  wait_for_beats(1, 3);
  beat.stop();
  const std::int64_t counted = heartbeats_of(store_, 1);
  Heartbeat another(store_, 2);
  wait_for_beats(2, 3);
  EXPECT_EQ(heartbeats_of(store_, 1), counted);
}

TEST_F(Liveness, TheStoreStaysForARankThatIsAtWork) {
  auto second = std::make_unique<Heartbeat>(store_, 1);
  ask_all(store_, rank_of_3(0), Broken::closed);  // rank 2 is missing
  auto left = std::async([&] { wait_until_gone(store_, rank_of_3(0), /*seconds=*/60); });
  EXPECT_EQ(left.wait_for(std::chrono::duration<double>(seconds_of_silence + 1)), std::future_status::timeout);
  second.reset();
  wait_until_gone(store_, rank_of_3(1), 60);
  left.get();
}

// A store that answers late is asked again when it has answered.
TEST(Question, IsNotAskedTwice_AndItsLateAnswerIsHeard) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  const auto asked = std::make_shared<std::atomic<int>>(0);
  const auto store = [asked, released] {
    ++*asked;
    released.wait();
    return asked->load();
  };
  Question<int> question;
  EXPECT_EQ(question.ask(0.01, store), std::nullopt);
  EXPECT_EQ(question.ask(0.01, store), std::nullopt);
  EXPECT_EQ(*asked, 1);
  release.set_value();
  std::optional<int> answer;
  while (!answer) answer = question.ask(60, store);
  EXPECT_EQ(answer, 1);
  EXPECT_EQ(question.ask(60, store), 2);
  EXPECT_EQ(question.ask(60, []() -> int { throw std::runtime_error("gone"); }), std::nullopt);
}

}  // namespace
}  // namespace headscope
