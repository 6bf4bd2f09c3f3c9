#include "capture/sampler.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/atomic_file.h"

namespace headscope {
namespace {

TEST(PositionSampler, KeepsTheRowsOfTheReference) {
  const auto cases = nlohmann::json::parse(read_file(std::filesystem::path(HEADSCOPE_ORACLES) / "capture.json"));
  ASSERT_EQ(cases.size(), 32U);
  std::size_t kept = 0;
  for (const auto& one : cases) {
    CaptureOptions options;
    ASSERT_TRUE(parse_value(one.at("sampler").get<std::string>(), options.sampler));
    options.bucket_size = one.at("bucket_size");
    options.base_rate = one.at("base_rate");
    const PositionSampler sampler(options);
    const std::int64_t length = one.at("length");
    for (std::int64_t position = 0; position < length; ++position)
      ASSERT_EQ(sampler.bucket(position), one.at("buckets").at(static_cast<std::size_t>(position)).get<std::int32_t>())
          << one.at("sampler") << " " << position;
    const auto rows = sampler.kept(one.at("example"), one.at("layer"), one.at("kind").get<std::string>()[0], length);
    EXPECT_EQ(rows, one.at("kept").get<std::vector<std::int32_t>>()) << one.at("sampler") << " " << one.at("example");
    kept += rows.size();
  }
  EXPECT_GT(kept, 10000U);
}

TEST(PositionSampler, ExpectsAsManyRowsAsProbabilitiesAddUpTo) {
  CaptureOptions options;
  options.sampler = Sampler::all;
  EXPECT_EQ(PositionSampler(options).expected(1000), 1000);
  options.sampler = Sampler::uniform;
  EXPECT_NEAR(PositionSampler(options).expected(1280), 10, 1e-9);  // 1280 / 128, exact in float32
  options.sampler = Sampler::log;
  // 255 positions of bucket 7 with 1/128 each, then one row of each bucket: 256 of bucket 8 with 1/256, 512 of
  // bucket 9.
  EXPECT_NEAR(PositionSampler(options).expected(1023), 255.0 / 128 + 2, 1e-9);
}

}  // namespace
}  // namespace headscope
