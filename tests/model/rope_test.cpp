// Frequencies of RoPE by their definitions, in float64. Those of published models are compared with transformers
// (tests/experiments/parity_test.cpp).
#include "model/rope.h"

#include <cmath>
#include <numbers>

#include "core/atomic_file.h"
#include "core/json_text.h"
#include "gtest/gtest.h"
#include "model/architectures.h"

namespace headscope {
namespace {

constexpr double base = 10000;
constexpr std::int64_t dims = 16;

DecoderConfig model_with(const RopeScaling& scaling) {
  DecoderConfig config;
  config.d_k = 32;
  config.rope = {.dims = dims, .base = base, .scaling = scaling};
  config.longest = 64;
  return config;
}

std::vector<double> frequencies(const RopeScaling& scaling, std::int64_t length = 64) {
  const DecoderConfig config = model_with(scaling);
  const at::Tensor f = rope_frequencies(config, config.rope, length);
  EXPECT_EQ(f.scalar_type(), at::kDouble);
  return {f.const_data_ptr<double>(), f.const_data_ptr<double>() + f.numel()};
}

double plain(std::size_t pair, double of_base = base) {
  return std::pow(of_base, -2.0 * static_cast<double>(pair) / dims);
}

TEST(Rope, LinearDividesEveryFrequency) {
  const auto f = frequencies({.kind = RopeScalingKind::linear, .factor = 4});
  ASSERT_EQ(f.size(), static_cast<std::size_t>(dims / 2));
  for (std::size_t i = 0; i < f.size(); ++i) EXPECT_NEAR(f[i], plain(i) / 4, 1e-15);
}

TEST(Rope, Llama3KeepsShortPeriodsAndDividesLongOnes) {
  const double original = 256, factor = 8;
  const auto f = frequencies({.kind = RopeScalingKind::llama3,
                              .factor = factor,
                              .original_length = original,
                              .low_frequency = 1,
                              .high_frequency = 4});
  bool kept = false, divided = false, between = false;
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double period = 2 * std::numbers::pi / plain(i);
    double expected = plain(i);
    if (period > original) {
      expected /= factor;
      divided = true;
    } else if (period < original / 4) {
      kept = true;
    } else {
      const double m = (original / period - 1) / 3;
      expected = (1 - m) * expected / factor + m * expected;
      between = true;
    }
    EXPECT_NEAR(f[i], expected, 1e-15) << i;
  }
  EXPECT_TRUE(kept && divided && between);
}

TEST(Rope, YarnInterpolatesBetweenTheTwoLimits) {
  const double original = 4096, factor = 4;
  const auto f = frequencies({.kind = RopeScalingKind::yarn, .factor = factor, .original_length = original});
  // The dimension that turns r times in L tokens: L·base^(-2x/n) = 2πr.
  const auto turns = [&](double r) {
    return dims * std::log(original / (2 * std::numbers::pi * r)) / (2 * std::log(base));
  };
  const double low = std::floor(turns(32)), high = std::ceil(turns(1));
  ASSERT_LT(low, high);
  for (std::size_t i = 0; i < f.size(); ++i) {
    const double m = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    EXPECT_NEAR(f[i], plain(i) * (1 - m) + plain(i) / factor * m, 1e-15) << i;
  }
}

TEST(Rope, LongropeAndDynamicDependOnTheLength) {
  const std::vector<double> brief = {1, 1, 2, 2, 3, 3, 4, 4}, extended = {1, 2, 3, 4, 5, 6, 7, 8};
  const RopeScaling longrope{.kind = RopeScalingKind::longrope,
                             .factor = 1,
                             .original_length = 32,
                             .short_factors = brief,
                             .long_factors = extended};
  for (std::size_t i = 0; i < brief.size(); ++i) {
    EXPECT_NEAR(frequencies(longrope, 32)[i], plain(i) / brief[i], 1e-15);
    EXPECT_NEAR(frequencies(longrope, 33)[i], plain(i) / extended[i], 1e-15);
  }
  const RopeScaling dynamic{.kind = RopeScalingKind::dynamic, .factor = 2};
  for (std::size_t i = 0; i < brief.size(); ++i) {
    EXPECT_NEAR(frequencies(dynamic, 64)[i], plain(i), 1e-15);
    EXPECT_NEAR(frequencies(dynamic, 96)[i], plain(i, base * std::pow(2 * 1.5 - 1, 16.0 / 14)), 1e-15);
  }
  const DecoderConfig of_long = model_with(longrope), of_dynamic = model_with(dynamic);
  EXPECT_EQ(frequency_set(of_long, of_long.rope, 10), frequency_set(of_long, of_long.rope, 32));
  EXPECT_NE(frequency_set(of_long, of_long.rope, 32), frequency_set(of_long, of_long.rope, 33));
  EXPECT_NE(frequency_set(of_dynamic, of_dynamic.rope, 96), frequency_set(of_dynamic, of_dynamic.rope, 97));
}

// Bit for bit: at position 8192, one bit of a frequency is more than parity allows.
TEST(Rope, FrequenciesOfPublishedModelsAreThoseOfTransformers) {
  const nlohmann::json rows = parse_json(read_file("tests/model/frequencies.json"));
  EXPECT_GE(rows.size(), 10U);
  for (const nlohmann::json& row : rows) {
    const DecoderConfig config =
        decoder_config(published_architecture("llama", "frequencies.json"), {row["config"], "frequencies.json"});
    const at::Tensor f = rope_frequencies(config, config.rope, row["length"].get<std::int64_t>());
    const auto expected = row["frequencies"].get<std::vector<float>>();
    ASSERT_EQ(f.scalar_type(), at::kFloat);
    EXPECT_EQ(std::vector<float>(f.const_data_ptr<float>(), f.const_data_ptr<float>() + f.numel()), expected)
        << row["name"];
  }
}

}  // namespace
}  // namespace headscope
