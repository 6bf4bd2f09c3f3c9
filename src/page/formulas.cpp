#include "page/formulas.h"

#include <fmt/format.h>

namespace headscope {

// | `k_norm` | norm | mean over tokens of ‖k‖₂ | unit | source |, where a | in a cell is written \|.
std::string formula_of(std::string_view metric) {
  const std::string_view text = measurements_text();
  std::size_t place = text.find(fmt::format("\n| `{}` |", metric));
  if (place == std::string_view::npos) return "";
  std::string cell;
  int cells = 0;
  for (++place; place < text.size() && text[place] != '\n' && cells < 4; ++place) {
    if (text[place] == '\\' && text.substr(place + 1, 1) == "|")
      cell += text[++place];
    else if (text[place] != '|')
      cell += text[place];
    else if (++cells < 4)
      cell.clear();
  }
  const std::size_t first = cell.find_first_not_of(' '), last = cell.find_last_not_of(' ');
  return first == std::string::npos ? "" : cell.substr(first, last - first + 1);
}

}  // namespace headscope
