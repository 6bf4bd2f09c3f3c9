// The page itself: the policy, the sections in their order, the data, the code.
#pragma once

#include <string>

#include "page/index.h"
#include "page/report_data.h"

namespace headscope {

// The whole file.
std::string page_html(const ReportData& data, const PageContent& content, const Choice& choice = {});

}  // namespace headscope
