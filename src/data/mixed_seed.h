// One seed out of two numbers, for a generator per document or per epoch: (0, 1), (1, 0) and (1, 1) have nothing in
// common. SplitMix64's finaliser (Steele, Lea and Flood 2014).
#pragma once

#include <cstdint>

namespace headscope {

constexpr std::uint64_t mixed_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

constexpr std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t index) {
  return mixed_bits(mixed_bits(seed) + index);
}

}  // namespace headscope
