// The stones of the page: texts that are safe in HTML, elements, tables.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "page/report_data.h"

namespace headscope {

// Text for an element or a quoted attribute. Bytes that are not UTF-8, and control characters, become U+FFFD.
std::string escaped(std::string_view text);

// JSON for a script element: "</script>" and the line ends of JavaScript cannot stand in it.
std::string script_json(const nlohmann::ordered_json& value);

// Text with names of code as docs/measurements.md writes them: what stands between two ` becomes <code>.
std::string with_code(std::string_view text);

// The text is escaped.
std::string element(std::string_view name, std::string_view text);

// The place of a picture that a script draws.
std::string view(std::string_view name);

// A table; one that may be long scrolls inside its frame. Columns of numbers have the class "number". `attributes`: of
// each row, with a space in front.
std::string table_html(const TextTable& table, const std::vector<std::string>& attributes = {});

}  // namespace headscope
