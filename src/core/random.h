// NumPy's default generator, bit for bit: SeedSequence, PCG64, Generator.integers, Generator.random and
// Generator.choice without replacement. Results drawn here can be compared with NumPy programs to the last digit.
// Beside it SplitMix64, for hashes and seeds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace headscope {

// The state of numpy.random.default_rng(seed). A copy draws the same numbers again.
class NumpyGenerator {
 public:
  explicit NumpyGenerator(std::uint64_t seed);

  std::uint64_t next64();
  // Takes the low half of a 64-bit draw and keeps the high half for the next call.
  std::uint32_t next32();
  // Uniform on 0..last, both included (numpy's bounded draw; last = 0 draws nothing).
  std::uint64_t bounded(std::uint64_t last);
  // Generator.integers(n), n >= 1.
  std::uint64_t integers(std::uint64_t n);
  // Generator.random(): uniform on [0, 1) with 53 bits.
  double uniform();

  // Generator.choice(n, k, replace=False), k <= n: k distinct numbers of 0..n-1 in drawn order.
  std::vector<std::int64_t> choice(std::int64_t n, std::int64_t k);
  // choice(n, 2), without allocating: the inner step of key-pair sampling.
  std::pair<std::int64_t, std::int64_t> choice_pair(std::int64_t n);

 private:
  __extension__ using uint128 = unsigned __int128;  // no standard name; every 64-bit gcc and clang has it

  void step();
  std::uint64_t bounded32(std::uint64_t last);
  std::uint64_t bounded64(std::uint64_t last);
  // Fisher-Yates from the end: swaps i with bounded(i) for i = size-1 down to first.
  void shuffle_tail(std::vector<std::int64_t>& values, std::size_t first);
  std::vector<std::int64_t> choice_by_tail_shuffle(std::size_t n, std::size_t k);
  std::vector<std::int64_t> choice_by_floyd(std::size_t n, std::size_t k);

  uint128 state_;
  uint128 increment_;
  bool has_half_ = false;
  std::uint32_t half_ = 0;
};

// SplitMix64 (Steele, Lea and Flood 2014): hashes of numbers, and a seed for each document, epoch or repeat.

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
