#include "core/json_text.h"

#include <unordered_set>

#include "core/error.h"

namespace headscope {
namespace {

constexpr int deepest_json = 64;

}  // namespace

using nlohmann::ordered_json;

std::string json_line(const ordered_json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
}

bool is_utf8(const ordered_json& value) {
  try {
    static_cast<void>(value.dump());
    return true;
  } catch (const ordered_json::type_error&) {
    return false;
  }
}

std::string json_text(const ordered_json& value) {
  return value.dump(2, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json parse_json(std::string_view text) {
  struct TooDeep {};
  const auto check_depth = [](int depth, ordered_json::parse_event_t, const ordered_json&) {
    if (depth > deepest_json) throw TooDeep();
    return true;
  };
  try {
    return ordered_json::parse(text, check_depth, /*allow_exceptions=*/false);
  } catch (const TooDeep&) {
    return ordered_json::value_t::discarded;
  }
}

nlohmann::json parse_strict_json(std::string_view text, const std::string& origin) {
  using nlohmann::json;
  // The library takes a zero byte for the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    fail_input("{}: is not JSON: it holds a zero byte at byte {}", origin, zero);
  std::vector<std::unordered_set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, json::parse_event_t event, json& value) {
    if (depth > deepest_json) fail_input("{}: its JSON is nested deeper than {} levels", origin, deepest_json);
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(value.get_ref<const std::string&>()).second)
      fail_input("{}: the key '{}' comes twice in one object", origin, excerpt(value.get_ref<const std::string&>()));
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::parse_error& error) {
    fail_input("{}: is not JSON at byte {}; copy or download the file again", origin, error.byte);
  } catch (const json::out_of_range&) {
    fail_input("{}: its JSON holds a number that is too large for any type", origin);
  }
}

std::string text_at(const ordered_json& object, const char* key, const std::string& without) {
  const ordered_json value = object.is_object() ? object.value(key, ordered_json()) : ordered_json();
  return value.is_string() ? value.get<std::string>() : without;
}

}  // namespace headscope
