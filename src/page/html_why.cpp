// Why? Tables of plasticity and surgery; the cards of heads are drawn by the script.
#include <algorithm>

#include "page/html_sections.h"
#include "page/html_text.h"

namespace headscope {

std::string tables_of_kind(const ReportData& data, std::initializer_list<std::string_view> kinds) {
  std::string text;
  for (const ReportRun& run : data.runs)
    for (const TextTable& table : run.tables)
      if (std::ranges::find(kinds, table.kind) != kinds.end())
        text += element("h3", run.name) + "\n" + table_html(table);
  return text;
}

std::string why_html(const ReportData& data) {
  const bool cards = first_tracked(data) != nullptr || std::ranges::any_of(data.runs, [](const ReportRun& run) {
                       return run.has_attention() || !run.plasticity.is_null() || !run.surgery.is_null();
                     });
  return (cards ? view("cards") : "") + tables_of_kind(data, {"plasticity", "surgery"});
}

}  // namespace headscope
