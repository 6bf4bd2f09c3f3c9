// The data of a page as JSON and blocks: README.md has the format.
#pragma once

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "page/budget.h"
#include "page/report_data.h"

namespace headscope {

// What a user chose of the data.
struct Choice {
  std::vector<std::string> metrics = {};                       // empty: all
  std::set<std::pair<std::int64_t, std::int64_t>> heads = {};  // layer, query head; empty: all

  [[nodiscard]] bool has_metric(std::string_view name) const {
    return metrics.empty() || std::ranges::find(metrics, name) != metrics.end();
  }
  [[nodiscard]] bool has_head(std::int64_t layer, std::int64_t head) const {
    return heads.empty() || heads.contains({layer, head});
  }
};

// The largest error of a metric's series in the page.
struct MetricError {
  double absolute = 0;  // on linear scales
  double relative = 0;  // on logarithmic scales, exp(error) − 1
};

struct PageContent {
  nlohmann::ordered_json index;
  std::vector<std::string> blocks;  // b0, b1, …
  std::map<std::string, MetricError> errors;
  std::vector<std::string> left_out;  // sentences: what the page does not hold
  bool exact_last = true;             // the last moment is; otherwise it has float32

  [[nodiscard]] std::size_t bytes() const;  // of the blocks
};

inline constexpr std::size_t no_role = 255;  // in blocks

// What the page calls a run: "A, seed 42" of a condition of its one study; otherwise the name of the run, with
// its number where others have the same name.
std::string label_of(const ReportData& data, const ReportRun& run);

// The effects as the page lists them: the total of QK-Norm, then its parts and the others.
std::vector<const Effect*> total_first(const Verdict& verdict);

PageContent page_content(const ReportData& data, const Choice& choice, const Detail& detail, double max_size,
                         const std::string& created);

}  // namespace headscope
