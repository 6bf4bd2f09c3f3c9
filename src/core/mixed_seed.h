// SplitMix64 (Steele, Lea and Flood 2014): hashes of numbers, and a seed for each document, epoch or repeat.
#pragma once

#include <cstdint>

namespace headscope {

// The finaliser: every bit of x changes about half of the bits of the result.
constexpr std::uint64_t mixed_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// What SplitMix64 adds to its state before each draw.
inline constexpr std::uint64_t splitmix_step = 0x9e3779b97f4a7c15;

// The first draw of SplitMix64 from this state.
constexpr std::uint64_t splitmix(std::uint64_t state) {
  return mixed_bits(state + splitmix_step);
}

// One seed out of two numbers: the seeds of (0, 1), (1, 0) and (1, 1) have nothing in common.
constexpr std::uint64_t mixed_seed(std::uint64_t seed, std::uint64_t index) {
  return splitmix(splitmix(seed) + index);
}

}  // namespace headscope
