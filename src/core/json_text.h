// The one way to write JSON. A name of a file may hold any bytes; what is not UTF-8 is replaced.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace headscope {

// On one line.
inline std::string json_line(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace);
}

// For files and standard output: indented, with a line end.
inline std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(2, ' ', /*ensure_ascii=*/false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace headscope
