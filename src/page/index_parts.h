// The parts of the index, each with a file of its own, and what they share.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "page/block.h"
#include "page/budget.h"
#include "page/index.h"
#include "page/report_data.h"

namespace headscope {

constexpr std::string_view index_unit = "index";  // of metrics that are indices, such as k_top_dim

using Places = std::vector<std::size_t>;  // of moments that are kept

// The blocks that the parts write, the roles that they name, and what they leave out.
struct IndexParts {
  IndexParts(const ReportData& given, const Choice& chosen, const Detail& wanted);  // which must outlive it

  nlohmann::ordered_json block(std::string text);                // its name
  nlohmann::ordered_json series(SeriesBlock coded);              // its block and how it is coded
  nlohmann::ordered_json columns(const NumberColumns& columns);  // a block of float32
  void say(std::string sentence);                                // that is left out
  // Of a label of a definition: its place in the list of roles.
  [[nodiscard]] std::optional<std::size_t> role_place(const RoleDefinition& definition, std::size_t label) const;

  const ReportData& data;
  const Choice& choice;
  const Detail& detail;
  PageContent content;
  std::vector<std::string> role_names;       // of all definitions in the page
  std::string letters_of_roles;              // one for each
  std::set<std::string_view> measured = {};  // metrics that a series has
  bool exact_last = true;
  std::size_t most_kept = 0, thinned = 0;  // moments
  bool without_training = false, attention_dropped = false;
};

// Null where the run has none.
nlohmann::ordered_json sources_json(const ReportRun& run, IndexParts& parts);    // index_heads.cpp
nlohmann::ordered_json gains_json(const ReportRun& run, IndexParts& parts);      // index_heads.cpp
nlohmann::ordered_json roles_json(const ReportRun& run, IndexParts& parts);      // index_roles.cpp
nlohmann::ordered_json steps_json(const ReportRun& run, IndexParts& parts);      // index_training.cpp
nlohmann::ordered_json probes_json(const ReportRun& run);                        // index_training.cpp
nlohmann::ordered_json events_json(const ReportRun& run, IndexParts& parts);     // index_training.cpp
nlohmann::ordered_json attention_json(const ReportRun& run, IndexParts& parts);  // index_attention.cpp
nlohmann::ordered_json examples_json(const ReportRun& run, IndexParts& parts);   // index_attention.cpp
nlohmann::ordered_json study_json(const ReportStudy& report);                    // index_study.cpp

// The shortest decimal that means the same float32.
double rounded_to_float(double value);

// The steps, or the tokens, of the moments that are kept.
nlohmann::ordered_json places_json(std::span<const Moment> moments, const Places& places, std::int64_t Moment::*count);

template <class T>
nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

}  // namespace headscope
