// What happened? The questions of summary.json with their answers.
#include <algorithm>

#include "page/html_sections.h"
#include "page/html_text.h"

namespace headscope {

std::string what_html(const ReportData& data) {
  std::string text;
  if (std::ranges::any_of(data.runs, [](const ReportRun& run) { return !run.steps.empty() || !run.probes.empty(); }))
    text += view("loss");
  for (const ReportRun& run : data.runs) {
    if (run.answers.empty()) continue;
    if (data.runs.size() > 1) text += element("h3", run.name) + "\n";
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
      const std::string run_part = data.runs.size() > 1 ? fmt::format("&r={}", &run - data.runs.data()) : "";
      text += fmt::format("<button type=\"button\" data-go=\"{}\">Show</button>\n</article>\n",
                          escaped(answer.go + run_part));
    }
  }
  return text;
}

}  // namespace headscope
