// Limits of the numbers that a user may give. Every size has an upper limit, so that no product of sizes overflows. No
// number may be NaN or infinite.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace headscope {

// No corpus has more tokens. A double holds every count up to here exactly.
inline constexpr std::int64_t most_tokens = 1'000'000'000'000'000;
// About the largest number of float32, the type of weights.
inline constexpr double largest_float = 3e38;
// No machine has more cores, and the system may refuse to start more threads.
inline constexpr std::int64_t most_threads = 1024;

// All of these throw Error(Fault::input).

// "train.batch is 0; expected 1 to 1048576"
void check_size(std::string_view key, std::int64_t value, std::int64_t least, std::int64_t most);

// What an option may be, and what it counts.
struct SizeRange {
  std::int64_t least = 0, most = 0;
  std::string_view unit = {};
};
struct NumberRange {
  double low = 0, high = 0;
  bool has_low = true, has_high = true;  // whether the ends are allowed
};
constexpr NumberRange positive_up_to(double high) {
  return {0, high, false, true};
}
constexpr NumberRange zero_up_to(double high) {
  return {0, high, true, true};
}
constexpr NumberRange between(double low, double high) {
  return {low, high, false, false};
}

// "study.tau is nan; expected more than 0 and at most 1000"
void check_number(std::string_view key, double value, const NumberRange& range);

inline void check_range(std::string_view key, std::int64_t value, const SizeRange& range) {
  check_size(key, value, range.least, range.most);
}
inline void check_range(std::string_view key, double value, const NumberRange& range) {
  check_number(key, value, range);
}

// "1 to 1048576", "more than 0 and at most 3e+38"
std::string range_text(const SizeRange& range);
std::string range_text(const NumberRange& range);
// The same with the unit, and without an upper end that is there for safety alone: "1 or more updates", "more than 0".
std::string short_range_text(const SizeRange& range);
std::string short_range_text(const NumberRange& range);

struct Factor {
  std::string_view key;
  std::int64_t value;
};
// The product. "train.batch 9 x train.seq_len 9 is too much; expected at most 80 tokens"
std::int64_t checked_product(std::initializer_list<Factor> factors, std::int64_t most, std::string_view unit);

}  // namespace headscope
