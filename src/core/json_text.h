// The one way to write JSON, and to read it. A name of a file may hold any bytes; what is not UTF-8 is replaced.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headscope {

// On one line.
std::string json_line(const nlohmann::ordered_json& value);

// For files and standard output: indented, with a line end.
std::string json_text(const nlohmann::ordered_json& value);

// A discarded value (see is_discarded()) when the text is not JSON, or is nested deeper than anything that we write:
// functions of a JSON value call themselves at every level, and a stranger's file must not exhaust the stack.
nlohmann::ordered_json parse_json(std::string_view text);

// What the object says under the key, where that is a text; otherwise `without`.
std::string text_at(const nlohmann::ordered_json& object, const char* key, const std::string& without = "");

}  // namespace headscope
