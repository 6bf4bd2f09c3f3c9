// SHA-256 (FIPS 180-4): the hash by which a page's policy names its own script and style.
#pragma once

#include <string>
#include <string_view>

namespace headscope {

// The 32 bytes.
std::string sha256(std::string_view bytes);

}  // namespace headscope
