#include "core/random.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace headscope {
namespace {

// NumPy's SeedSequence (after M. E. O'Neill's randutils seed_seq_fe): a pool of four 32-bit words into which the words
// of the seed are hashed, each word then mixed into all others.
class SeedSequence {
 public:
  explicit SeedSequence(std::uint64_t seed) {
    // A seed below 2^32 is one word; absent words hash as zeros, so both cases are the same two words.
    pool_[0] = hash(static_cast<std::uint32_t>(seed));
    pool_[1] = hash(static_cast<std::uint32_t>(seed >> 32));
    pool_[2] = hash(0);
    pool_[3] = hash(0);
    for (std::size_t source = 0; source < pool_.size(); ++source) {
      for (std::size_t target = 0; target < pool_.size(); ++target) {
        if (source != target) pool_[target] = mix(pool_[target], hash(pool_[source]));
      }
    }
  }

  // The first four 64-bit words, low half first.
  [[nodiscard]] std::array<std::uint64_t, 4> words() const {
    std::uint32_t multiplier = 0x8b51f9dd;
    const auto word32 = [&](std::size_t i) -> std::uint64_t {
      std::uint32_t value = pool_[i % pool_.size()] ^ multiplier;
      multiplier *= 0x58f38ded;
      value *= multiplier;
      return value ^ (value >> 16);
    };
    std::array<std::uint64_t, 4> words{};
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint64_t low = word32(2 * i), high = word32(2 * i + 1);
      words[i] = high << 32 | low;
    }
    return words;
  }

 private:
  std::uint32_t hash(std::uint32_t value) {
    value ^= multiplier_;
    multiplier_ *= 0x931e8875;
    value *= multiplier_;
    return value ^ (value >> 16);
  }

  static std::uint32_t mix(std::uint32_t x, std::uint32_t y) {
    const std::uint32_t value = x * 0xca01f9dd - y * 0x4973f715;
    return value ^ (value >> 16);
  }

  std::uint32_t multiplier_ = 0x43b0d7e5;
  std::array<std::uint32_t, 4> pool_{};
};

// The numbers taken so far by Floyd's method: open addressing at load factor at most 1/2.
class TakenSet {
 public:
  explicit TakenSet(std::size_t capacity) : slots_(std::bit_ceil(2 * capacity + 1), kFree) {}

  // False if the value was there.
  bool insert(std::uint64_t value) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = value & mask;
    while (slots_[slot] != kFree) {
      if (slots_[slot] == value) return false;
      slot = (slot + 1) & mask;
    }
    slots_[slot] = value;
    return true;
  }

 private:
  static constexpr std::uint64_t kFree = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::uint64_t> slots_;
};

// NumPy shuffles the tail of 0..n-1 where that is cheaper than a set: for many draws out of a large population.
bool prefers_tail_shuffle(std::int64_t n, std::int64_t k) {
  return n > 10000 && k > n / 50;
}

}  // namespace

NumpyGenerator::NumpyGenerator(std::uint64_t seed) {
  const auto words = SeedSequence(seed).words();
  const uint128 initial = uint128{words[0]} << 64 | words[1];
  const uint128 stream = uint128{words[2]} << 64 | words[3];
  increment_ = stream << 1 | 1;
  state_ = increment_ + initial;  // one step from state 0, then the initial value
  step();
}

void NumpyGenerator::step() {
  constexpr uint128 multiplier = uint128{0x2360ED051FC65DA4} << 64 | 0x4385DF649FCCF645;
  state_ = state_ * multiplier + increment_;
}

std::uint64_t NumpyGenerator::next64() {
  step();
  const auto high = static_cast<std::uint64_t>(state_ >> 64), low = static_cast<std::uint64_t>(state_);
  return std::rotr(high ^ low, static_cast<int>(high >> 58));
}

std::uint32_t NumpyGenerator::next32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const std::uint64_t both = next64();
  has_half_ = true;
  half_ = static_cast<std::uint32_t>(both >> 32);
  return static_cast<std::uint32_t>(both);
}

double NumpyGenerator::uniform() {
  return static_cast<double>(next64() >> 11) * 0x1p-53;
}

// Lemire's method: the high half of draw * size, rejecting the draws that would favour some results.
std::uint64_t NumpyGenerator::bounded32(std::uint64_t last) {
  const auto size = static_cast<std::uint32_t>(last + 1);
  std::uint64_t product = std::uint64_t{next32()} * size;
  if (static_cast<std::uint32_t>(product) < size) {
    const std::uint32_t threshold =
        (std::numeric_limits<std::uint32_t>::max() - static_cast<std::uint32_t>(last)) % size;
    while (static_cast<std::uint32_t>(product) < threshold) product = std::uint64_t{next32()} * size;
  }
  return product >> 32;
}

std::uint64_t NumpyGenerator::bounded64(std::uint64_t last) {
  const std::uint64_t size = last + 1;
  uint128 product = uint128{next64()} * size;
  if (static_cast<std::uint64_t>(product) < size) {
    const std::uint64_t threshold = (std::numeric_limits<std::uint64_t>::max() - last) % size;
    while (static_cast<std::uint64_t>(product) < threshold) product = uint128{next64()} * size;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t NumpyGenerator::bounded(std::uint64_t last) {
  constexpr std::uint64_t last32 = std::numeric_limits<std::uint32_t>::max();
  if (last == 0) return 0;
  if (last < last32) return bounded32(last);
  if (last == last32) return next32();
  if (last == std::numeric_limits<std::uint64_t>::max()) return next64();
  return bounded64(last);
}

std::uint64_t NumpyGenerator::integers(std::uint64_t n) {
  HEADSCOPE_CHECK(n >= 1, "n = {}", n);
  return bounded(n - 1);
}

void NumpyGenerator::shuffle_tail(std::vector<std::int64_t>& values, std::size_t first) {
  for (std::size_t i = values.size(); i-- > first;) std::swap(values[i], values[bounded(i)]);
}

std::vector<std::int64_t> NumpyGenerator::choice_by_tail_shuffle(std::size_t n, std::size_t k) {
  std::vector<std::int64_t> values(n);
  std::iota(values.begin(), values.end(), 0);
  shuffle_tail(values, std::max<std::size_t>(n - k, 1));
  values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(k));
  values.shrink_to_fit();
  return values;
}

std::vector<std::int64_t> NumpyGenerator::choice_by_floyd(std::size_t n, std::size_t k) {
  std::vector<std::int64_t> drawn;
  drawn.reserve(k);
  TakenSet taken(k);
  for (std::uint64_t j = n - k; j < n; ++j) {
    std::uint64_t value = bounded(j);
    if (!taken.insert(value)) {
      value = j;
      taken.insert(value);
    }
    drawn.push_back(static_cast<std::int64_t>(value));
  }
  shuffle_tail(drawn, 1);
  return drawn;
}

std::vector<std::int64_t> NumpyGenerator::choice(std::int64_t n, std::int64_t k) {
  HEADSCOPE_CHECK(k >= 0 && k <= n, "k = {}, n = {}", k, n);
  const auto population = static_cast<std::size_t>(n), draws = static_cast<std::size_t>(k);
  return prefers_tail_shuffle(n, k) ? choice_by_tail_shuffle(population, draws) : choice_by_floyd(population, draws);
}

// Two draws out of more than 10000 are fewer than a fiftieth, so this is always Floyd's method.
std::pair<std::int64_t, std::int64_t> NumpyGenerator::choice_pair(std::int64_t n) {
  HEADSCOPE_CHECK(n >= 2, "n = {}", n);
  const auto population = static_cast<std::uint64_t>(n);
  const std::uint64_t first = bounded(population - 2);
  std::uint64_t second = bounded(population - 1);
  if (second == first) second = population - 1;
  const bool keep = bounded(1) == 1;
  const auto pair = std::pair(static_cast<std::int64_t>(first), static_cast<std::int64_t>(second));
  return keep ? pair : std::pair(pair.second, pair.first);
}

}  // namespace headscope
