// What a run will take, and where it is computed.
#include "experiments/estimate.h"

#include <ATen/Parallel.h>

#include "core/console.h"
#include "core/parallel.h"
#include "ops/attention.h"
#include "ops/device.h"
#include "plan/memory.h"
#include "support/expect_error.h"
#include "support/largest_model.h"
#include "train/trainer.h"

namespace headscope {
namespace {

using test::expect_error;

TEST(Estimate, CountsStepsAndProbes) {
  const TrainEstimate estimate = estimate_training(headscope::Setup{}, choose_device("cpu"));
  EXPECT_EQ(estimate.steps, 150);
  EXPECT_EQ(estimate.probes, 16);
  EXPECT_EQ(estimate.parameters.total, count_parameters(DecoderConfig{}).total);
  EXPECT_GT(estimate.seconds, 0);
  EXPECT_FALSE(estimate.gpu_memory_mb);
}

// A model that no memory holds, and a run that never ends: an estimate all the same, at once.
TEST(Estimate, OfTheLargestSetupIsFinite) {
  headscope::Setup setup;  // a test has a Setup of its own
  setup.model = test::largest_model();
  setup.train.tokens = 1'000'000'000'000'000;
  setup.train.batch = 1 << 20;
  setup.train.probe_every = 1;
  ASSERT_NO_THROW(validate(setup));
  const TrainEstimate estimate = estimate_training(setup, choose_device("cpu"));
  EXPECT_GT(estimate.memory_mb, 1e9);
  EXPECT_TRUE(std::isfinite(estimate.seconds) && estimate.seconds > 1e15);
  EXPECT_EQ(format_duration(estimate.seconds).back(), 'h');
}

// A plan knows without torch how a GPU would compute a step.
TEST(Estimate, APlanTakesTheStepThatAGpuMakes) {
  const at::Device gpu(at::kCUDA, 0);
  headscope::Setup setup;
  for (const Activation activation : {Activation::squared_relu, Activation::silu})
    for (const bool deterministic : {false, true})
      for (const std::int64_t d_k : {32, 64, 66, 128}) {
        setup.model.activation = activation;
        setup.model.d_k = d_k;
        setup.train.deterministic = deterministic;
        const StepKind kind = step_on_gpu(setup);
        EXPECT_EQ(kind.written_out, has_device_updates(setup.model, setup.train, gpu));
        EXPECT_EQ(kind.repeated_keys, wants_repeated_keys(d_k, gpu, at::kBFloat16, deterministic));
      }
  setup.model.activation = Activation::squared_relu;
  setup.train.max_abs_penalty = 1;
  EXPECT_FALSE(step_on_gpu(setup).written_out);
}

TEST(Device, UsesTheThreadsAskedFor) {
  const bool is_given = std::getenv("OMP_NUM_THREADS") != nullptr;
  const std::int64_t without = is_given ? at::get_num_threads() : static_cast<std::int64_t>(available_cores());
  EXPECT_EQ(choose_device("cpu").threads, without);
  for (const std::int64_t threads : {1, 3}) {
    const ComputeDevice device = choose_device("cpu", threads);
    EXPECT_EQ(device.threads, threads);
    EXPECT_EQ(at::get_num_threads(), threads);
  }
  EXPECT_EQ(choose_device("cpu").threads, without);
  for (const std::int64_t threads : {-1, 1025})
    expect_error(Fault::input, "threads is ", [&] { choose_device("cpu", threads); });
}

}  // namespace
}  // namespace headscope
