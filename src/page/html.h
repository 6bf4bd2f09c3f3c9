// The page itself: header, answers and tables as HTML that needs no script, the policy, the data, the code.
#pragma once

#include <string>
#include <string_view>

#include "page/index.h"
#include "page/report_data.h"

namespace headscope {

// Text for an element or a quoted attribute. Bytes that are not UTF-8, and control characters, become U+FFFD.
std::string escaped(std::string_view text);

// JSON for a script element: "</script>" and the line ends of JavaScript cannot stand in it.
std::string script_json(const nlohmann::ordered_json& value);

// The whole file.
std::string page_html(const ReportData& data, const PageContent& content, const Choice& choice = {});

}  // namespace headscope
