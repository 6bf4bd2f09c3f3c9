// The one way to write and read JSON. Bytes that are not UTF-8 are replaced: the name of a file may hold any.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace headscope {

// The value on one line.
std::string json_line(const nlohmann::ordered_json& value);

// Whether json_line() replaces nothing.
bool is_utf8(const nlohmann::ordered_json& value);

// For files and standard output: indented, with a line end.
std::string json_text(const nlohmann::ordered_json& value);

// A discarded value (see is_discarded()) when the text is not JSON, or is nested deeper than anything that we write.
// The library's functions are recursive: a hostile file must not exhaust the stack.
nlohmann::ordered_json parse_json(std::string_view text);

// JSON of another program, from a file named `origin`. Throws Error(Fault::input) when the text is not JSON (with the
// byte), is nested deeper than 64, has a key twice in one object, or holds a number beyond float64. Its objects are
// sorted by key: unlike those of ordered_json, they find a key among many in logarithmic time.
nlohmann::json parse_strict_json(std::string_view text, const std::string& origin);

// The text under the key; `without` where the key is absent or its value is not a text.
std::string text_at(const nlohmann::ordered_json& object, const char* key, const std::string& without = "");

}  // namespace headscope
