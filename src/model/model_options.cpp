#include "model/model_options.h"

#include <cmath>

#include "core/json_text.h"

namespace headscope {

using nlohmann::json;

namespace {

// NaN, which lies in no range, of what is no number.
double number_of(const json& value) {
  return value.is_number() ? value.get<double>() : std::nan("");
}

bool lies_in(const NumberRange& range, double number) {
  const bool low = range.has_low ? number >= range.low : number > range.low;
  return low && (range.has_high ? number <= range.high : number < range.high);
}

}  // namespace

ModelOptions::ModelOptions(const json& object, std::string origin, std::string place)
    : object_(object), origin_(std::move(origin)), place_(std::move(place)) {
  if (!object.is_object())
    fail_input("{}: {} is not an object of options", origin_,
               place_.empty() ? "it" : place_.substr(0, place_.size() - 1));
}

const json* ModelOptions::find(std::string_view name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

const json& ModelOptions::required(std::string_view name) const {
  const json* value = find(name);
  if (value == nullptr) fail_input("{}: {}{} is missing; it describes the model", origin_, place_, name);
  return *value;
}

bool ModelOptions::has(std::string_view name) const {
  return find(name) != nullptr;
}

bool ModelOptions::mentions(std::string_view name) const {
  return object_.contains(name);
}

void ModelOptions::fail(std::string_view name, std::string_view expected) const {
  const json* value = find(name);
  fail_input("{}: {}{} is {}; {}", origin_, place_, name, value == nullptr ? "missing" : excerpt(json_line(*value), 80),
             expected);
}

std::int64_t ModelOptions::size(std::string_view name, const SizeRange& range) const {
  const json& value = required(name);
  const bool fits = value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() >> 63 != 0);
  if (!fits || value.get<std::int64_t>() < range.least || value.get<std::int64_t>() > range.most)
    fail(name, fmt::format("expected a whole number, {}", range_text(range)));
  return value.get<std::int64_t>();
}

std::int64_t ModelOptions::size(std::string_view name, const SizeRange& range, std::int64_t without) const {
  return has(name) ? size(name, range) : without;
}

double ModelOptions::number(std::string_view name, const NumberRange& range) const {
  const json& value = required(name);
  if (!lies_in(range, number_of(value))) fail(name, fmt::format("expected a number, {}", range_text(range)));
  return number_of(value);
}

double ModelOptions::number(std::string_view name, const NumberRange& range, double without) const {
  return has(name) ? number(name, range) : without;
}

bool ModelOptions::flag(std::string_view name, bool without) const {
  if (!has(name)) return without;
  if (!required(name).is_boolean()) fail(name, "expected true or false");
  return required(name).get<bool>();
}

std::string ModelOptions::text(std::string_view name) const {
  if (!required(name).is_string()) fail(name, "expected text");
  return required(name).get<std::string>();
}

std::string ModelOptions::text(std::string_view name, std::string_view without) const {
  return has(name) ? text(name) : std::string(without);
}

std::vector<double> ModelOptions::numbers(std::string_view name, const NumberRange& range, std::size_t least) const {
  std::vector<double> numbers;
  for (const json& value : required(name)) {
    numbers.push_back(number_of(value));
    if (!lies_in(range, numbers.back())) fail(name, fmt::format("expected numbers, each {}", range_text(range)));
  }
  if (!required(name).is_array() || numbers.size() < least)
    fail(name, fmt::format("expected a list of {} numbers", least));
  return numbers;
}

std::vector<std::string> ModelOptions::texts(std::string_view name, std::size_t least) const {
  std::vector<std::string> texts;
  for (const json& value : required(name)) {
    if (!value.is_string()) fail(name, "expected a list of texts");
    texts.push_back(value.get<std::string>());
  }
  if (!required(name).is_array() || texts.size() < least) fail(name, fmt::format("expected a list of {} texts", least));
  return texts;
}

ModelOptions ModelOptions::object(std::string_view name) const {
  if (!required(name).is_object()) fail(name, "expected an object");
  return {required(name), origin_, fmt::format("{}{}.", place_, name)};
}

}  // namespace headscope
