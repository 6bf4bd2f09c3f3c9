#include "page/html.h"

#include "page/block.h"
#include "page/html_sections.h"
#include "page/html_text.h"
#include "page/sha256.h"
#include "page/web_files.h"

namespace headscope {
namespace {

// `run`: that the section is about, where there are several; the script names another one.
std::string section(std::string_view id, std::string_view heading, const std::string& content,
                    const std::string& run = "") {
  if (content.empty()) return "";
  const std::string of_run = run.empty() ? "" : fmt::format("<span class=\"of-run\"> — {}</span>", escaped(run));
  return fmt::format("<section id=\"{}\">\n<h2>{}{}</h2>\n{}</section>\n", id, escaped(heading), of_run, content);
}

std::string policy() {
  const auto source = [](std::string_view bytes) { return "'sha256-" + base64(sha256(bytes)) + "'"; };
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; img-src data: blob:; base-uri 'none'; form-action 'none'; "
      "require-trusted-types-for 'script'",
      source(web_script()), source(web_style()));
}

}  // namespace

std::string page_html(const ReportData& data, const PageContent& content, const Choice& choice) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"generator\" content=\"headscope\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", policy());
  page += element("title", data.title + " – headscope") + "\n<style>" + std::string(web_style()) +
          "</style>\n</head>\n<body>\n";
  page += header_html(data, content.index);
  page +=
      "<noscript><p class=\"no-script\">Pictures and controls need scripts, which are off in this browser. Texts and "
      "tables do not.</p></noscript>\n";
  page += view("controls") + "<main>\n";
  const std::string compared = section("compare", "Compare", compare_html(data));
  const ReportRun* first = first_tracked(data);
  const std::string run = first != nullptr && data.runs.size() > 1 ? label_of(data, *first) : "";
  if (!data.studies.empty()) page += compared;  // what a study is for
  page += section("what", "What happened?", what_html(data, content));
  page += section("heads", "Which heads?", heads_html(data, choice), run);
  page += section("time", "When?", time_html(data, choice), run);
  page += section("why", "Why?", why_html(data), run);
  if (data.studies.empty()) page += compared;
  page += section("trust", "Can I trust it?", trust_html(data, content));
  page += "</main>\n<script type=\"application/json\" id=\"index\">" + script_json(content.index) + "</script>\n";
  page.reserve(page.size() + content.bytes() + 100 * content.blocks.size() + web_script().size() + 1000);
  for (std::size_t i = 0; i < content.blocks.size(); ++i)
    page += fmt::format("<script type=\"application/x-headscope\" id=\"b{}\">{}</script>\n", i, content.blocks[i]);
  page += "<script>" + std::string(web_script()) + "</script>\n</body>\n</html>\n";
  return page;
}

}  // namespace headscope
