// What is saved by several ranks together.
#include "train/checkpoint.h"

#include <gtest/gtest.h>

#include "support/rank_threads.h"
#include "support/temporary_folder.h"
#include "train/small_run.h"

namespace headscope {
namespace {

TEST(Checkpoint, OfRanksWithOtherWeightsIsNotSavedAndNamesThem) {
  const test::TemporaryFolder folder;
  const TrainJob job = test::small_job(folder.path());
  const Corpus corpus = test::small_corpus(job.options);
  CheckpointState state;
  const auto errors = test::errors_of_ranks(3, {.backend = RanksBackend::gloo}, [&](const Ranks& ranks) {
    const Trainer trainer(make_decoder(job.model, job.seed), job.options, job.seed, corpus, test::cpu(), ranks);
    save_checkpoint(folder / "equal", trainer, state, 1);
    if (ranks.rank() == 2) trainer.model().embedding.detach()[3][1].add_(1e-7);
    save_checkpoint(folder / "other", trainer, state, 1);
  });
  for (const std::exception_ptr& error : errors) {
    ASSERT_TRUE(error);
    try {
      std::rethrow_exception(error);
    } catch (const AgreedError& caught) {
      EXPECT_TRUE(std::string_view(caught.what()).starts_with("step 0: rank 2 of 3 has other weights than rank 0"))
          << caught.what();
    }
  }
  EXPECT_TRUE(latest_checkpoint(folder / "equal"));
  EXPECT_FALSE(latest_checkpoint(folder / "other"));
}

}  // namespace
}  // namespace headscope
