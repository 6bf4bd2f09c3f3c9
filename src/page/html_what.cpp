// What happened? The questions of summary.json with their answers.
#include <algorithm>

#include "page/html_sections.h"
#include "page/html_text.h"

namespace headscope {
namespace {

// Whether the page holds the metrics that a view is of: "m=entropy&x=k_norm&y=entropy".
bool can_be_shown(std::string_view view, const PageContent& content) {
  while (!view.empty()) {
    const std::string_view part = view.substr(0, view.find('&'));
    view.remove_prefix(std::min(view.size(), part.size() + 1));
    const bool names_metric = part.starts_with("m=") || part.starts_with("x=") || part.starts_with("y=");
    if (names_metric && !content.errors.contains(std::string(part.substr(2)))) return false;
  }
  return true;
}

}  // namespace

std::string what_html(const ReportData& data, const PageContent& content) {
  std::string text;
  if (std::ranges::any_of(data.runs, [](const ReportRun& run) { return !run.steps.empty() || !run.probes.empty(); }))
    text += view("loss");
  for (const ReportRun& run : data.runs) {
    if (run.answers.empty()) continue;
    if (data.runs.size() > 1) text += element("h3", label_of(data, run)) + "\n";
    for (const Answer& answer : run.answers) {
      text +=
          fmt::format("<article class=\"answer\" id=\"answer-{}-{}\">\n", &run - data.runs.data(), escaped(answer.key));
      text += "<h3>" + with_code(answer.question) + "</h3>\n<p>" + with_code(answer.sentence) + "</p>\n";
      if (!answer.number.empty()) text += fmt::format("<p class=\"number\">{}</p>\n", with_code(answer.number));
      if (!answer.rules.empty()) {
        text += "<details><summary>By which rule?</summary>\n";
        for (const std::string& rule : answer.rules) text += fmt::format("<p class=\"rule\">{}</p>\n", with_code(rule));
        text += "</details>\n";
      }
      if (!can_be_shown(answer.go, content)) {
        text += "</article>\n";
        continue;
      }
      const std::string run_part = data.runs.size() > 1 ? fmt::format("&r={}", &run - data.runs.data()) : "";
      text += fmt::format("<button type=\"button\" data-go=\"{}\">Show</button>\n</article>\n",
                          escaped(answer.go + run_part));
    }
  }
  return text;
}

}  // namespace headscope
