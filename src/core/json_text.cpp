#include "core/json_text.h"

namespace headscope {

using nlohmann::ordered_json;

std::string json_line(const ordered_json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace);
}

std::string json_text(const ordered_json& value) {
  return value.dump(2, ' ', /*ensure_ascii=*/false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json parse_json(std::string_view text) {
  struct TooDeep {};
  const auto check_depth = [](int depth, ordered_json::parse_event_t, const ordered_json&) {
    constexpr int deepest = 64;
    if (depth > deepest) throw TooDeep();
    return true;
  };
  try {
    return ordered_json::parse(text, check_depth, /*allow_exceptions=*/false);
  } catch (const TooDeep&) {
    return ordered_json::value_t::discarded;
  }
}

std::string text_at(const ordered_json& object, const char* key, const std::string& without) {
  const ordered_json value = object.is_object() ? object.value(key, ordered_json()) : ordered_json();
  return value.is_string() ? value.get<std::string>() : without;
}

}  // namespace headscope
