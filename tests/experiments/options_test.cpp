// Numbers that a user gives: refused by name, or good for a run.
#include "train/options.h"

#include <ATen/Parallel.h>

#include "core/parallel.h"
#include "core/random.h"
#include "data/blocks.h"
#include "experiments/estimate.h"
#include "experiments/train_run.h"
#include "support/expect_error.h"

namespace headscope {
namespace {

using test::expect_error;

TEST(Options, RefuseWhatMakesNoSense) {
  const auto refused = [](const char* message, auto change) {
    TrainOptions options;
    change(options);
    expect_error(Fault::input, message, [&] { validate(options); });
  };
  refused("train.batch is 0; expected 1 to 1048576", [](auto& o) { o.batch = 0; });
  refused("train.probe_every is 3, train.accumulation 2; expected a multiple", [](auto& o) {
    o.probe_every = 3;
    o.accumulation = 2;
  });
  refused("train.tokens is 100, one update takes 4096", [](auto& o) { o.tokens = 100; });
  refused("optim.momentum is 1; expected at least 0 and less than 1", [](auto& o) { o.optim.muon.momentum = 1; });
  refused("train.batch 1048576 x train.seq_len 1048576 x train.accumulation 1024 is too much", [](auto& o) {
    o.batch = o.seq_len = 1 << 20;
    o.accumulation = o.probe_every = 1024;
  });
  // 2^32 x 2^32 is 0 in 64 bits, by which tokens were divided.
  refused("train.batch is 4294967296", [](auto& o) { o.batch = o.seq_len = std::int64_t{1} << 32; });
}

// Every key, set to what no one means: an error that is the user's, with the name of the key, or options with which
// everything that is computed beforehand is positive and exact.
TEST(Options, HostileValuesOfEveryKeyAreRefusedByNameOrWork) {
  const std::vector<std::string> values = {
      "0", "-1", "1e30", "9223372036854775807", "4294967296", "1048576", "nan", "inf", "", "text", "-0.0"};
  int refused = 0, accepted = 0;
  for (const std::string& key : field_names(TrainRunOptions{}))
    for (const std::string& value : values) {
      if (key == "preset") continue;  // names, not values
      try {
        const auto options = resolve_setup<TrainRunOptions>({{key, value, "test"}});
        validate(options);
        EXPECT_GT(options.train.tokens_per_step(), 0) << key << "=" << value;
        EXPECT_GT(options.train.steps(), 0) << key << "=" << value;
        EXPECT_GT(count_parameters(options.model).total, 0) << key << "=" << value;
        ++accepted;
      } catch (const Error& error) {
        EXPECT_EQ(error.fault(), Fault::input) << error.what();
        EXPECT_THAT(error.what(), ::testing::HasSubstr(key)) << value;
        ++refused;
      }
    }
  EXPECT_GT(refused, 200);
  EXPECT_GT(accepted, 50);
}

// No number is accepted that YAML or JSON cannot give back.
TEST(Options, NoNumberMayBeNanOrInfinite) {
  const TrainRunOptions defaults;
  TrainRunOptions::fields(defaults, [](const char* key, const auto& value, const char*) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, double>)
      for (const double hostile : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        TrainRunOptions options;
        TrainRunOptions::fields(options, [&](std::string_view name, auto& field, const char*) {
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(field)>, double>)
            if (name == key) field = hostile;
        });
        expect_error(Fault::input, fmt::format("{} is ", key), [&] { validate(options); });
      }
  });
}

// Random options out of large powers of two: what validate() lets pass is computed as by numbers that do not wrap
// around.
TEST(Options, ProductsThatPassAreExact) {
  NumpyGenerator generator(1);
  const auto power = [&](std::uint64_t most) { return std::int64_t{1} << generator.integers(most + 1); };
  int passed = 0;
  for (int i = 0; i < 20'000; ++i) {
    TrainOptions options;
    options.batch = power(63);
    options.seq_len = power(25);
    options.accumulation = options.probe_every = power(25);
    options.validation_batches = power(25);
    options.tokens = 1'000'000'000'000'000;
    try {
      validate(options);
    } catch (const Error&) {
      continue;
    }
    ++passed;
    const long double tokens = static_cast<long double>(options.batch) * options.seq_len * options.accumulation;
    ASSERT_EQ(static_cast<long double>(options.tokens_per_step()), tokens);
    ASSERT_EQ(static_cast<long double>(options.steps()), std::floor(1e15L / tokens));
    ASSERT_GT(tokens_for_batches(options.validation_batches, options.batch, options.seq_len), 0);
  }
  EXPECT_GT(passed, 500);
}

TEST(Estimate, CountsStepsAndProbes) {
  const TrainEstimate estimate = estimate_training(headscope::Setup{}, choose_device("cpu"));
  EXPECT_EQ(estimate.steps, 150);
  EXPECT_EQ(estimate.probes, 16);
  EXPECT_EQ(estimate.parameters.total, count_parameters(DecoderConfig{}).total);
  EXPECT_GT(estimate.seconds, 0);
}

// A model that no memory holds, and a run that never ends: an estimate all the same, at once.
TEST(Estimate, OfTheLargestSetupIsFinite) {
  headscope::Setup setup;  // a test has a Setup of its own
  setup.model = {.vocabulary = 1 << 24,
                 .d_model = 1 << 20,
                 .layers = 4096,
                 .heads = 256,
                 .kv_heads = 256,
                 .d_k = 65536,
                 .d_ff = 1 << 24};
  setup.train.tokens = 1'000'000'000'000'000;
  setup.train.batch = 1 << 20;
  setup.train.probe_every = 1;
  ASSERT_NO_THROW(validate(setup));
  const TrainEstimate estimate = estimate_training(setup, choose_device("cpu"));
  EXPECT_GT(estimate.memory_mb, 1e9);
  EXPECT_TRUE(std::isfinite(estimate.seconds) && estimate.seconds > 1e15);
  EXPECT_EQ(format_duration(estimate.seconds).back(), 'h');
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
