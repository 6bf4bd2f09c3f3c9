// Lists in options: "0,4-7", "gain,random"; and places chosen from a long list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

// The parts between commas; an empty text has one, which is empty.
std::vector<std::string> comma_separated(std::string_view text);

// The members of "0,4-7" in ascending order. Throws Error(Fault::input); `name` is the flag for its message.
std::vector<std::int64_t> parse_index_list(std::string_view text, std::string_view name);

// At most `most` (two or more) of 0 ... count - 1, evenly spaced, the first and the last among them.
std::vector<std::size_t> evenly_spaced(std::size_t count, std::size_t most);

}  // namespace headscope
