#include "page/html_text.h"

#include <algorithm>

#include "core/json_text.h"
#include "core/text.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_table_rows = 2000;
constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// The length of the UTF-8 sequence at the start of the text; 0: it is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first < 0xe0   ? 2
                             : first >= 0xe0 && first < 0xf0 ? 3
                             : first >= 0xf0 && first < 0xf5 ? 4
                                                             : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool beyond = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return overlong || beyond ? 0 : length;
}

bool is_number_word(std::string_view word) {
  static constexpr std::string_view others[] = {"–", "to", "±", "%", "<", "(all", "equal)"};
  if (std::ranges::find(others, word) != std::end(others)) return true;
  for (const std::string_view sign : {"+", "-", "−"})
    if (word.starts_with(sign)) word.remove_prefix(sign.size());
  return !word.empty() && word.find_first_not_of("0123456789.,e+-") == std::string_view::npos && word[0] >= '0' &&
         word[0] <= '9';
}

// "−0.51", "12.13 ± 1.00", "< 0.001", "−2.91 to −0.32", "–", or nothing.
bool is_number(std::string_view cell) {
  for (std::size_t start = 0; start < cell.size();) {
    const std::size_t end = std::min(cell.find(' ', start), cell.size());
    if (!is_number_word(cell.substr(start, end - start))) return false;
    start = end + 1;
  }
  return true;
}

// The columns of numbers: at least one, and nothing else. The first column names the rows, whatever it holds.
std::vector<bool> number_columns(const TextTable& table) {
  std::vector<bool> numbers(table.head.size());
  for (std::size_t column = 1; column < numbers.size(); ++column) {
    bool any = false, all = true;
    for (const std::vector<std::string>& row : table.rows) {
      if (column >= row.size()) continue;
      any = any || row[column].find_first_of("0123456789") != std::string::npos;
      all = all && is_number(row[column]);
    }
    numbers[column] = any && all;
  }
  return numbers;
}

std::string row_html(const std::vector<std::string>& cells, const std::vector<bool>& numbers, bool is_head,
                     std::string_view attributes = "") {
  std::string text = fmt::format("<tr{}>", attributes);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string_view of_number = i < numbers.size() && numbers[i] ? " class=\"number\"" : "";
    const std::string_view name = is_head || i == 0 ? "th" : "td";
    const std::string_view scope = is_head ? " scope=\"col\"" : i == 0 ? " scope=\"row\"" : "";
    text += fmt::format("<{0}{1}{2}>{3}</{0}>", name, scope, of_number, with_code(cells[i]));
  }
  return text + "</tr>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char c = text.front();
    const bool control = length == 1 && (static_cast<unsigned char>(c) < ' ' || c == '\x7f') && c != '\n' && c != '\t';
    if (length == 0 || control)
      safe += replacement;
    else if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else if (c == '"')
      safe += "&quot;";
    else if (c == '\'')
      safe += "&#39;";
    else
      safe += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return safe;
}

std::string with_code(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const std::size_t first = text.find('`'), second = first == text.npos ? text.npos : text.find('`', first + 1);
    html += escaped(text.substr(0, second == text.npos ? text.npos : first));
    if (second == text.npos) break;
    html += element("code", text.substr(first + 1, second - first - 1));
    text.remove_prefix(second + 1);
  }
  return html;
}

std::string script_json(const ordered_json& value) {
  const std::string text = json_line(value);
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view three = std::string_view(text).substr(i, 3);
    if (text[i] == '<') {
      safe += "\\u003c";
    } else if (three == "\xE2\x80\xA8" || three == "\xE2\x80\xA9") {
      safe += three == "\xE2\x80\xA8" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

std::string element(std::string_view name, std::string_view text) {
  return fmt::format("<{0}>{1}</{0}>", name, escaped(text));
}

std::string view(std::string_view name) {
  return fmt::format("<div class=\"view\" data-view=\"{}\"></div>\n", name);
}

std::string table_html(const TextTable& table, const std::vector<std::string>& attributes) {
  std::string text = fmt::format("<div class=\"frame\"><table class=\"{}\">\n", escaped(table.kind));
  const std::vector<bool> numbers = number_columns(table);
  text += "<caption>" + with_code(table.caption) + "</caption>\n<thead>" + row_html(table.head, numbers, true) +
          "</thead>\n<tbody>\n";
  const std::size_t shown = std::min(table.rows.size(), most_table_rows);
  for (std::size_t i = 0; i < shown; ++i)
    text += row_html(table.rows[i], numbers, false, i < attributes.size() ? attributes[i] : "");
  text += "</tbody></table></div>\n";
  const std::size_t left_out = table.left_out + table.rows.size() - shown;
  if (left_out > 0)
    text += fmt::format("<p class=\"note\">{} more rows are not shown.</p>\n",
                        with_separators(static_cast<std::int64_t>(left_out)));
  return text;
}

}  // namespace headscope
