// What the operations between ranks give, against closed forms, and whom errors name.
#include "ranks/ranks.h"

#include <gtest/gtest.h>

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
  EXPECT_TRUE(at::equal(ranks.joined(own), own));
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
      ranks.fill_rows(rows);
      EXPECT_TRUE(at::equal(rows, all));

      const at::Tensor gathered = ranks.gather_to_first(own);
      EXPECT_EQ(gathered.defined(), rank == 0);
      EXPECT_TRUE(rank != 0 || at::equal(gathered, all));

      // Two at once, which end in another order.
      Ranks::Begun exchanged = ranks.begin_exchange(rows_of(rank, size));
      Ranks::Begun summed = ranks.begin_reduce_scatter(rows_of(rank, size));
      const at::Tensor sum = ranks.finish(summed), received = ranks.finish(exchanged);
      for (int other = 0; other < size; ++other) EXPECT_TRUE(at::equal(received[other], rows_of(other, size)[rank]));
      EXPECT_TRUE(at::equal(sum, received.sum(0)));  // whole numbers: exact in any order
    });
  }
}

TEST(Ranks, WithOtherFacts_AreNamedOnceAsBadInput) {
  for (const std::string key : {"version", "data"}) {
    const auto errors = errors_of_ranks(3, {.backend = RanksBackend::gloo}, [&key](const Ranks& ranks) {
      nlohmann::ordered_json facts = {{"version", "1.0"}, {"data", "abc"}};
      if (ranks.rank() == 2) facts[key] = "other";
      ranks.live([&] { ranks.compare(facts); });
    });
    std::vector<std::string> messages;
    for (const std::exception_ptr& error : errors) {
      ASSERT_TRUE(error);
      try {
        std::rethrow_exception(error);
      } catch (const Error& caught) {
        EXPECT_EQ(caught.fault(), Fault::input);
        if (*caught.what() != '\0') messages.emplace_back(caught.what());
      }
    }
    ASSERT_EQ(messages.size(), 1U);
    EXPECT_TRUE(messages[0].starts_with("rank 2 of 3: " + key + " is \"other\", and ")) << messages[0];
  }
}

}  // namespace
}  // namespace headscope
