#include "capture/sampler.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <random>

#include "core/random.h"

namespace headscope {
namespace {

// The generator of a text, a layer and a side: the numbers are mixed into a seed, whose low 32 bits start a Mersenne
// twister. MODELS of the format: s = ((s xor mix(v))·0x9E37…) mod 2^64, s ^= s >> 32.
std::mt19937 generator_of(std::int64_t example_id, std::int64_t layer, char kind) {
  std::uint64_t seed = 0x243f6a8885a308d3;
  for (const auto value : {static_cast<std::uint64_t>(example_id), static_cast<std::uint64_t>(layer),
                           static_cast<std::uint64_t>(static_cast<unsigned char>(kind))}) {
    seed = (seed ^ mixed_bits(value)) * splitmix_step;
    seed ^= seed >> 32;
  }
  return std::mt19937(static_cast<std::uint32_t>(seed));
}

}  // namespace

PositionSampler::PositionSampler(const CaptureOptions& options)
    : kind_(options.sampler), bucket_size_(options.bucket_size), base_rate_(options.base_rate) {
  if (kind_ != Sampler::log) return;
  bucket_size_ = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bucket_size_)));
  least_bucket_ = std::countr_zero(static_cast<std::uint64_t>(bucket_size_));
}

std::int32_t PositionSampler::bucket(std::int64_t position) const {
  if (kind_ != Sampler::log) return static_cast<std::int32_t>(position / bucket_size_);
  return std::max(least_bucket_,
                  static_cast<std::int32_t>(std::bit_width(static_cast<std::uint64_t>(position) + 1)) - 1);
}

// In float32, as the other program compares.
float PositionSampler::probability(std::int64_t position) const {
  if (kind_ == Sampler::all) return 1;
  if (kind_ == Sampler::uniform)
    return static_cast<float>(std::min(1.0, base_rate_ / static_cast<double>(bucket_size_)));
  return std::min(1.0F, static_cast<float>(base_rate_) / std::ldexp(1.0F, bucket(position)));
}

std::vector<std::int32_t> PositionSampler::kept(std::int64_t example_id, std::int64_t layer, char kind,
                                                std::int64_t length) const {
  std::vector<std::int32_t> positions;
  if (kind_ == Sampler::all) {
    positions.resize(static_cast<std::size_t>(length));
    std::iota(positions.begin(), positions.end(), 0);
    return positions;
  }
  std::mt19937 generator = generator_of(example_id, layer, kind);
  for (std::int64_t position = 0; position < length; ++position) {
    const float u = static_cast<float>(generator() & 0xffffff) * 0x1p-24F;
    if (u < probability(position)) positions.push_back(static_cast<std::int32_t>(position));
  }
  return positions;
}

double PositionSampler::expected(std::int64_t length) const {
  double rows = 0;
  for (std::int64_t position = 0; position < length; ++position) rows += static_cast<double>(probability(position));
  return rows;
}

}  // namespace headscope
