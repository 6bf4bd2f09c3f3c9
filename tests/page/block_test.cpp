#include "page/block.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/error.h"
#include "core/missing.h"
#include "page/read_block.h"
#include "page/sha256.h"

namespace headscope {
namespace {

constexpr std::size_t n_moments = 40;

// Curves of 6 heads with some values missing.
std::vector<double> walks(double start, double step, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values;
  for (std::size_t head = 0; head < 6; ++head) {
    double value = start;
    for (std::size_t i = 0; i < n_moments; ++i)
      values.push_back((head + i) % 17 == 3 ? missing : value += step * normal(generator));
  }
  return values;
}

// The largest distance, of the logarithms where the scale is one.
double worst(const std::vector<double>& values, const SeriesBlock& block) {
  const std::vector<double> read = values_of(block, n_moments);
  EXPECT_EQ(read.size(), values.size());
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::isfinite(values[i]), std::isfinite(read[i])) << i;
    if (!std::isfinite(values[i])) continue;
    largest = std::max(largest,
                       block.log ? std::abs(std::log(values[i]) - std::log(read[i])) : std::abs(values[i] - read[i]));
  }
  return largest;
}

TEST(SeriesBlock, KeepsValuesWithinHalfAStep) {
  for (const int bits : {12, 10, 8}) {
    const std::vector<double> values = walks(5, 0.1, 1);
    const SeriesBlock block = series_block(values, n_moments, {bits});
    EXPECT_EQ(block.codec, fmt::format("d{}", bits));
    EXPECT_FALSE(block.log);
    EXPECT_LE(worst(values, block), block.error);
    EXPECT_NEAR(block.error, (block.high - block.low) / (2 * ((1 << bits) - 2)), 1e-5 * block.error);
  }
}

TEST(SeriesBlock, TakesLogarithmsOfAWideRange) {
  std::vector<double> values = walks(0, 0.8, 2);
  for (double& value : values) value = std::exp(value);
  const SeriesBlock block = series_block(values, n_moments, {});
  EXPECT_TRUE(block.log);
  EXPECT_LE(worst(values, block), block.error);
  values[0] = 0;  // has no logarithm
  EXPECT_FALSE(series_block(values, n_moments, {}).log);
}

TEST(SeriesBlock, KeepsIndicesExactlyWithMoreBitsWhereNeeded) {
  std::vector<double> values;
  for (std::size_t i = 0; i < 6 * n_moments; ++i) values.push_back(static_cast<double>(1 + i * 37 % 300));
  const SeriesBlock block = series_block(values, n_moments, {8}, /*index=*/true);
  EXPECT_EQ(block.bits, 10);
  EXPECT_EQ(block.error, 0);
  EXPECT_EQ(values_of(block, n_moments), values);
  for (double& value : values) value = std::fmod(value, 128);
  const SeriesBlock small = series_block(values, n_moments, {8}, /*index=*/true);
  EXPECT_EQ(small.bits, 8);
  EXPECT_EQ(values_of(small, n_moments), values);
}

TEST(SeriesBlock, TakesEqualMissingAndHugeValues) {
  const std::vector<double> equal(2 * n_moments, 3.25);
  EXPECT_EQ(values_of(series_block(equal, n_moments, {}), n_moments), equal);
  const std::vector<double> none(n_moments, missing);
  for (const double value : values_of(series_block(none, n_moments, {}), n_moments)) EXPECT_TRUE(std::isnan(value));
  std::vector<double> huge(n_moments, 1e308);
  huge[1] = -1e308;
  huge[2] = std::numeric_limits<double>::infinity();
  const SeriesBlock block = series_block(huge, n_moments, {});
  EXPECT_TRUE(std::isfinite(block.error));
}

TEST(SeriesBlock, ExactIsFloat32) {
  const std::vector<double> values = walks(5, 0.1, 3);
  const SeriesBlock block = series_block(values, n_moments, {12, true});
  EXPECT_EQ(block.codec, "f32");
  const std::vector<double> read = values_of(block, n_moments);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    EXPECT_EQ(read[i], static_cast<double>(static_cast<float>(values[i])));
  }
}

// RFC 4648, section 10.
TEST(Base64, EqualsTheVectorsOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

// FIPS 180-4, examples of NIST.
TEST(Sha256, EqualsTheVectorsOfTheStandard) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1000000, 'a'))), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace headscope
