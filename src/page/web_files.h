// The code and the style that run in a reader's browser: web/, bundled (cmake/Web.cmake).
#pragma once

#include <string_view>

namespace headscope {

std::string_view web_script();
std::string_view web_style();

}  // namespace headscope
