// The sections of the page as HTML that needs no script. Each has a file of its own: html_header.cpp, html_what.cpp, …
// A section without data is empty.
#pragma once

#include <optional>
#include <string>

#include "page/index.h"
#include "page/report_data.h"

namespace headscope {

std::string header_html(const ReportData& data, const nlohmann::ordered_json& index);
std::string what_html(const ReportData& data, const PageContent& content);   // What happened?
std::string heads_html(const ReportData& data, const Choice& choice);        // Which heads?
std::string time_html(const ReportData& data, const Choice& choice);         // When?
std::string why_html(const ReportData& data);                                // Why?
std::string compare_html(const ReportData& data);                            // Compare
std::string trust_html(const ReportData& data, const PageContent& content);  // Can I trust it?

// The head nearest to each role: a part of "Which heads?", in html_nearest.cpp.
std::string nearest_html(const ReportData& data, const ReportRun& run);

// Of a study, in html_study.cpp.
std::string study_summary(const StudyResult& result);  // in one or two sentences: the total effect, then its parts
std::string legend_html(const Verdict& verdict);       // the letters of its conditions
std::string study_html(const ReportStudy& report);     // the tables of the verdict

// What several sections say of a run.

std::string status_text(const ReportRun& run);
std::optional<Moment> last_moment(const ReportRun& run);
double training_loss(const ReportRun& run);    // the last one; missing where there is none
double validation_loss(const ReportRun& run);  // likewise
// A published model says nothing of its training: its one moment is step 0.
bool says_its_training(const ReportRun& run, const Moment& moment);

// The run that tables of heads are of; nullptr: no head was measured.
const ReportRun* first_tracked(const ReportData& data);

// The tables of all runs that are of these kinds, each under the name of its run.
std::string tables_of_kind(const ReportData& data, std::initializer_list<std::string_view> kinds);

}  // namespace headscope
