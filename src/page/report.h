// `headscope report`: folders in, one file out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace headscope {

constexpr const char* report_name = "report.html";

struct ReportOptions {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path out = {};            // empty: report.html in the first run
  double max_size = 5;                       // megabytes: a file that people mail
  std::string metrics = {};                  // names and groups, comma-separated; empty: all
  std::string heads = {};                    // query heads, such as L1H2,L3H0; empty: all
  std::optional<std::int64_t> moments = {};  // of each source, at most; none: 300, fewer where the file were too large
  bool exact = false;                        // float32 and all moments, however large the file
};

struct ReportOutcome {
  std::filesystem::path out;
  std::size_t bytes = 0;
  std::vector<std::string> left_out;  // sentences
  std::vector<std::string> notes;     // what could not be read
  std::string too_large;              // above max_size, with everything reduced that can be: by what; empty: it is not
  std::size_t runs = 0;
};

// Reads without a lock and writes one file, atomically. Throws Error: input (nothing was written), runtime.
ReportOutcome write_report(const ReportOptions& options);

// What --json prints.
nlohmann::ordered_json to_json(const ReportOutcome& outcome);

// One line: the place, its size, what was reduced.
std::string to_terminal(const ReportOutcome& outcome);

}  // namespace headscope
