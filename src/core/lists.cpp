#include "core/lists.h"

#include <algorithm>
#include <set>

#include "core/config.h"
#include "core/error.h"

namespace headscope {

std::vector<std::string> comma_separated(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::vector<std::int64_t> parse_index_list(std::string_view text, std::string_view name) {
  constexpr std::int64_t largest = 100000;  // no model has more heads; a slip such as 0-9999999999 must not fill memory
  std::set<std::int64_t> members;
  const auto refuse = [&] { fail_input("{} '{}': expected numbers and ranges such as 0,4-7", name, text); };
  const std::vector<std::string> parts = comma_separated(text);
  for (const std::string_view part : parts) {
    const std::size_t dash = part.find('-');
    std::int64_t first = 0, last = 0;
    if (!parse_value(part.substr(0, dash), first)) refuse();
    if (dash == std::string_view::npos)
      last = first;
    else if (!parse_value(part.substr(dash + 1), last))
      refuse();
    if (first < 0 || last < first || last > largest) refuse();
    for (std::int64_t member = first; member <= last; ++member) members.insert(member);
  }
  return {members.begin(), members.end()};
}

std::vector<std::size_t> evenly_spaced(std::size_t count, std::size_t most) {
  HEADSCOPE_CHECK(most >= 2, "at most {} places", most);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < std::min(count, most); ++i)
    chosen.push_back(count <= most ? i : i * (count - 1) / (most - 1));
  return chosen;
}

}  // namespace headscope
