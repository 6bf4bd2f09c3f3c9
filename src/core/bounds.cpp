#include "core/bounds.h"

#include "core/error.h"

namespace headscope {

void check_size(std::string_view key, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    fail_input("{} is {}; expected {}", key, value, range_text(SizeRange{least, most}));
}

void check_number(std::string_view key, double value, const NumberRange& range) {
  const bool above = range.has_low ? value >= range.low : value > range.low;  // false for NaN
  const bool below = range.has_high ? value <= range.high : value < range.high;
  if (!above || !below) fail_input("{} is {}; expected {}", key, value, range_text(range));
}

std::string range_text(const SizeRange& range) {
  return fmt::format("{} to {}", range.least, range.most);
}

std::string range_text(const NumberRange& range) {
  return fmt::format("{} {} and {} {}", range.has_low ? "at least" : "more than", range.low,
                     range.has_high ? "at most" : "less than", range.high);
}

std::string short_range_text(const SizeRange& range) {
  const std::string text = range.most == most_tokens ? fmt::format("{} or more", range.least) : range_text(range);
  return range.unit.empty() ? text : fmt::format("{} {}", text, range.unit);
}

std::string short_range_text(const NumberRange& range) {
  const bool is_open = range.high == largest_float;
  return is_open ? fmt::format("{} {}", range.has_low ? "at least" : "more than", range.low) : range_text(range);
}

std::int64_t checked_product(std::initializer_list<Factor> factors, std::int64_t most, std::string_view unit) {
  std::int64_t product = 1;
  std::string text;
  bool overflow = false;
  for (const Factor& factor : factors) {
    overflow = __builtin_mul_overflow(product, factor.value, &product) || overflow;
    text += fmt::format("{}{} {}", text.empty() ? "" : " x ", factor.key, factor.value);
  }
  if (overflow || product > most) fail_input("{} is too much; expected at most {} {}", text, most, unit);
  return product;
}

}  // namespace headscope
