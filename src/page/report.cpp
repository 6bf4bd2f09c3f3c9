#include "page/report.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>

#include "core/atomic_file.h"
#include "core/bounds.h"
#include "core/config.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/lists.h"
#include "core/regular_file.h"
#include "page/html.h"
#include "page/texts.h"
#include "run/manifest.h"
#include "run/names.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

std::string megabytes_text(std::size_t bytes) {
  const double megabytes = static_cast<double>(bytes) / bytes_of_a_megabyte;
  return fmt::format("{:.{}f} MB", megabytes, megabytes < 1 ? 2 : 1);
}

std::vector<std::string> chosen_metrics(const std::string& text) {
  std::vector<std::string> names;
  if (text.empty()) return names;
  const MetricSelection selection(text, "--metrics");
  for (const Metric& metric : head_metrics())
    if (selection.has(metric.name)) names.emplace_back(metric.name);
  return names;
}

Choice choice_of(const ReportOptions& options) {
  Choice choice{chosen_metrics(options.metrics)};
  if (options.heads.empty()) return choice;
  for (const std::string& name : comma_separated(options.heads)) {
    const auto head = query_head_named(name);
    if (!head) fail_input("--heads: '{}' is no query head; expected names such as L1H2,L3H0", name);
    choice.heads.insert(*head);
  }
  return choice;
}

// A head that no run has was misspelt.
void check_choice(const Choice& choice, const ReportData& data) {
  for (const auto& [layer, head] : choice.heads) {
    bool known = false;
    HeadCounts last;
    for (const ReportRun& run : data.runs) {
      last = run.counts();
      known = known || (layer < last.layers && head < last.query_heads);
    }
    if (!known)
      fail_input("--heads: there is no L{}H{}; a run has {} layers, each with {} query heads", layer, head, last.layers,
                 last.query_heads);
  }
  for (const std::string& metric : choice.metrics) {
    const bool measured = std::ranges::any_of(
        data.runs, [&](const ReportRun& run) { return run.tracks.probe.has(metric) || run.tracks.train.has(metric); });
    if (measured) return;
  }
  if (!choice.metrics.empty())
    fail_input("--metrics: no run has measured {}", fmt::format("{}", fmt::join(choice.metrics, ", ")));
}

// What the system would refuse after all the work.
void check_place(const fs::path& file, const std::string& named) {
  constexpr long room = 32;  // of the temporary name that it has while it is written
  const fs::path folder = file.parent_path();
  const auto length = static_cast<long>(file.filename().native().size());
  if (const long most = ::pathconf(folder.c_str(), _PC_NAME_MAX); most > room && length > most - room)
    fail_input("{}: a name of {} bytes is too long; at most {} can be written there", excerpt(named), length,
               most - room);
  if (::access(folder.c_str(), W_OK) != 0)
    fail_input("{}: the folder {} cannot be written: {}; name another place with --out", excerpt(named),
               folder.string(), std::strerror(errno));
}

// Whether a file is a page of ours, or empty.
bool is_page(const fs::path& file) {
  std::string start(4096, '\0');
  start.resize(open_regular_file(file).read(std::as_writable_bytes(std::span(start))));
  return start.empty() || (start.starts_with("<!doctype html>") && start.find("headscope") != std::string::npos);
}

// Inside a run only the name that is ours: other files there would be taken for the user's.
fs::path out_file(const ReportOptions& options) {
  std::error_code error;
  if (options.out.empty()) {
    const fs::path file = absolute_folder(options.runs.front()) / report_name;
    if (fs::is_directory(file, error))
      fail_input("{}: is a folder, and the report has this name; name another place with --out", file.string());
    if (fs::is_directory(file.parent_path(), error)) check_place(file, file.string());
    return file;
  }
  const std::string named = "--out " + excerpt(options.out.string());
  const fs::file_status there = fs::symlink_status(options.out, error);
  if (fs::is_directory(fs::status(options.out, error))) fail_input("{}: is a folder; name a file in it", named);
  if (fs::exists(there) && !fs::is_regular_file(there))
    fail_input("{}: is a link or a device, not a file; name another", named);
  // Where the folder is a link, what it leads to counts.
  const fs::path typed = fs::absolute(options.out).lexically_normal();
  const fs::path folder = fs::weakly_canonical(typed.parent_path(), error), file = folder / typed.filename();
  if (error) fail_input("{}: {}", named, error.message());
  for (const fs::path& run : options.runs) {
    const fs::path inside = file.lexically_relative(fs::weakly_canonical(run, error));
    if (!inside.empty() && *inside.begin() != ".." && file.filename() != report_name)
      fail_input("{}: lies in {}, which is read; a report is called {} there; choose another place", named,
                 run.string(), report_name);
  }
  const fs::path around = run_around(folder);
  if (!around.empty()) {
    RunNames names;
    names.add_chosen(read_manifest(around));
    const fs::path relative = file.lexically_relative(around);
    if (file.filename() != report_name || !names.is_ours(relative, /*is_folder=*/false))
      fail_input("{}: lies in the run {}; a report is called {} there; choose another place", named, around.string(),
                 (around / report_name).string());
  }
  if (!fs::is_directory(folder, error)) fail_input("{}: the folder {} is not there", named, excerpt(folder.string()));
  check_place(file, named);
  if (fs::exists(there) && !is_page(file))
    fail_input("{}: is there and is no report; name another file, or remove it", named);
  return file;
}

// All that the page may hold, and enough to choose from.
std::size_t most_read(const ReportOptions& options) {
  if (options.moments) return std::max(most_kept_moments, static_cast<std::size_t>(*options.moments));
  return options.exact ? std::numeric_limits<std::size_t>::max() : most_kept_moments;
}

// What makes most of a page: its name, its bytes, and how to get less of it.
struct Part {
  std::string name;
  std::size_t bytes = 0;
  std::string advice;
};

Part largest_part(const PageContent& content) {
  Part values{"values over time", 0, "--metrics, --heads or --moments make them fewer"},
      attention{"attention on texts", 0, "--heads keeps that of some heads; inspect fewer --tokens"},
      examples{"examples", 0, "--heads keeps those of some heads; inspect with fewer --examples"},
      text{"text and tables", json_line(content.index).size(), "give fewer runs"};
  const auto size = [&](const nlohmann::ordered_json& name) {
    return name.is_string() ? content.blocks[std::stoul(name.get<std::string>().substr(1))].size() : 0;
  };
  for (const nlohmann::ordered_json& run : content.index["runs"]) {
    for (const auto& source : run["sources"])
      for (const auto& series : source["series"]) values.bytes += size(series["block"]);
    if (!run["attention"].is_null()) {
      for (const auto& of_text : run["attention"]["blocks"])
        for (const auto& block : of_text) attention.bytes += size(block);
      attention.bytes += json_line(run["attention"]["texts"]).size();
    }
    if (!run["examples"].is_null())
      for (const auto& [layer, block] : run["examples"]["blocks"].items()) examples.bytes += size(block);
  }
  const std::vector<Part> parts = {values, attention, examples, text};
  return *std::ranges::max_element(parts, {}, &Part::bytes);
}

// What values and code leave to attention and examples; half of the page at least.
double room_for_texts(const ReportData& data, double limit) {
  // With 8 bits and 100 moments; exact last values, scores of roles and a row of the table for each head.
  constexpr double code = 2e5, of_a_moment = 28, of_a_head = 1500;
  double others = code;
  for (const ReportRun& run : data.runs)
    for (const Tracks* tracks : {&run.tracks.probe, &run.tracks.train})
      others += static_cast<double>(tracks->counts.layers * tracks->counts.query_heads) *
                (of_a_head + of_a_moment * static_cast<double>(std::min<std::size_t>(tracks->moments.size(), 100)));
  return std::max(limit / 2, 0.9 * (limit - others));
}

// The first detail whose page is small enough; the last one otherwise.
struct Fitted {
  std::string html;
  std::vector<std::string> left_out;
  Part largest;  // where it is too large
};

Fitted fitted_page(ReportData& data, const Choice& choice, const ReportOptions& options) {
  const std::string created = utc_now();
  const double limit = options.max_size * bytes_of_a_megabyte;
  const auto moments = options.moments ? std::optional(static_cast<std::size_t>(*options.moments)) : std::nullopt;
  std::vector<std::string> thinned;
  if (!options.exact && choice.heads.empty()) thinned = thin_texts(data, room_for_texts(data, limit));
  Fitted fitted;
  const std::vector<Detail> levels = details(options.exact, moments);
  for (const Detail& detail : levels) {
    PageContent content = page_content(data, choice, detail, options.max_size, created);
    if (static_cast<double>(content.bytes()) > limit && &detail != &levels.back())
      continue;  // and so would be the page
    content.left_out.insert(content.left_out.end(), thinned.begin(), thinned.end());
    content.index["reduced"]["left_out"] = content.left_out;
    fitted = {page_html(data, content, choice), content.left_out, {}};
    if (static_cast<double>(fitted.html.size()) <= limit) break;
    fitted.largest = largest_part(content);
  }
  return fitted;
}

}  // namespace

ReportOutcome write_report(const ReportOptions& options) {
  if (options.runs.empty() || std::ranges::any_of(options.runs, &fs::path::empty))
    fail_input("the name of a run is empty; name its folder");
  check_number("--max-size", options.max_size, NumberRange{0.1, 1000});
  if (options.moments) check_size("--moments", *options.moments, 2, 1'000'000);
  const Choice choice = choice_of(options);
  const fs::path out = out_file(options);
  ReportData data = read_report(options.runs, most_read(options));
  check_choice(choice, data);
  const Fitted page = fitted_page(data, choice, options);
  remove_leftovers(out);
  write_file(out, page.html);
  ReportOutcome outcome{out, page.html.size(), page.left_out, data.notes, {}, data.runs.size()};
  if (!options.exact && static_cast<double>(outcome.bytes) > options.max_size * bytes_of_a_megabyte)
    outcome.too_large =
        fmt::format("the file has {}, more than {:g} MB; most of it: {} ({}); {}", megabytes_text(outcome.bytes),
                    options.max_size, page.largest.name, megabytes_text(page.largest.bytes), page.largest.advice);
  return outcome;
}

nlohmann::ordered_json to_json(const ReportOutcome& outcome) {
  return {{"report", outcome.out.string()}, {"bytes", outcome.bytes}, {"runs", outcome.runs},
          {"left_out", outcome.left_out},   {"notes", outcome.notes}, {"too_large", !outcome.too_large.empty()}};
}

std::string to_terminal(const ReportOutcome& outcome) {
  std::string line = fmt::format("report: {} ({}", on_one_line(outcome.out.string()), megabytes_text(outcome.bytes));
  if (!outcome.left_out.empty()) line += fmt::format("; reduced: {}", fmt::join(outcome.left_out, "; "));
  return line + ")";
}

}  // namespace headscope
