// Numbers that a user gives: refused by name, or good for a run.
#include "core/random.h"
#include "data/blocks.h"
#include "experiments/train_run.h"
#include "settings/ranks_options.h"
#include "settings/train_options.h"
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
  TrainRunOptions::fields(defaults, [](const char* key, const auto& value, const char*, const auto&...) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, double>)
      for (const double hostile : {std::nan(""), std::numeric_limits<double>::infinity()}) {
        TrainRunOptions options;
        TrainRunOptions::fields(options, [&](std::string_view name, auto& field, const char*, const auto&...) {
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

// What the error tells to set is accepted.
TEST(Options, RanksThatCannotShareAnUpdateAreToldWhatTo) {
  TrainOptions options;
  options.batch = options.accumulation = 4;
  options.probe_every = 20;
  expect_error(Fault::input,
               "3 ranks cannot share train.accumulation=4 evenly; take 1, 2, 4 ranks, or --set train.accumulation=6 "
               "train.probe_every=24: train.accumulation must be a multiple of the ranks. The tokens of an update can "
               "stay only where its sequences are a multiple of 3 (16 now)",
               [&] { check_ranks(options, 3); });
  options.accumulation = 6;
  options.probe_every = 24;
  validate(options);
  check_ranks(options, 3);
}

}  // namespace
}  // namespace headscope
