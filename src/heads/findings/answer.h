// What the questions share: reading a run (the source, means over what was measured, curves of layer groups), and how
// numbers and names stand in sentences, tables and JSON.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/missing.h"
#include "heads/tracks.h"
#include "stats/dip_test.h"
#include "stats/distributions.h"

namespace headscope {

// How an answer is reached, in a sentence for the reader of the answer.
struct Rule {
  std::string_view name, sentence;
  bool of_a_course = false;  // says nothing where there is one moment
};

// What an answer rests on.
struct Basis {
  std::string source;
  std::vector<Moment> moments;
  std::vector<std::string> not_tracked;  // metrics that the question asks for and the source does not have

  // False: the question needs a course over time and there is none.
  [[nodiscard]] bool has_course() const { return moments.size() > 1; }
};

// The fixed batch of the probes wherever it was measured, otherwise the training batches: values of the fixed batch
// differ by the weights alone, those of training batches by the text, too.
const Tracks& main_source(const RunTracks& run);

// The main source; the other one where only that has all these metrics.
const Tracks& source_for(const RunTracks& run, std::initializer_list<std::string_view> metrics);

Basis basis_of(const Tracks& tracks, std::initializer_list<std::string_view> metrics);

// All heads at the last moment; empty when the metric was not tracked.
std::span<const double> heads_at_end(const Tracks& tracks, std::string_view metric);

// The mean over the heads of a group of layers: at the first moment, where it is lowest, at the last moment.
struct GroupCurve {
  double start = missing, lowest = missing, end = missing;
  std::optional<Moment> lowest_at;  // the first such moment
};
GroupCurve group_curve(const Tracks& tracks, std::string_view metric, const GroupLayers& group);

// The mean over the heads of a group at one moment.
double group_mean(const Tracks& tracks, std::string_view metric, std::size_t moment, const GroupLayers& group);

// Three significant digits with a true minus sign; "–" for a number that is not known.
std::string number_text(double value);
std::string percent_text(double share, std::initializer_list<double> limits = {});  // "83 %"; see fixed_text
std::string interval_text(double low, double high);                                 // "−0.7 to −0.53"
std::string source_text(std::string_view source);            // "the fixed held-out batch (probe)"
std::string layers_text(const GroupLayers& group);           // "early layers (0 to 7)", "middle layer (2)"
std::string joined(std::span<const std::string> parts);      // "a, b and c"
std::string counted(std::size_t n, std::string_view thing);  // "1 head", "3 heads"

// "Not answered: entropy was not tracked."
std::string not_tracked_text(std::span<const std::string> metrics);

// A table of Markdown; nothing without rows.
using Row = std::vector<std::string>;
std::string table_text(const Row& head, const std::vector<Row>& rows);
std::string step_cell(const std::optional<Moment>& moment);  // "120"
std::string p_cell(double p);                                // "< 0.001"
inline constexpr std::size_t most_listed = 12;               // heads in a list; the JSON has all

// In JSON, what is not known is null: NaN becomes null when it is written.
nlohmann::ordered_json moment_json(const Moment& moment);
template <class T>
nlohmann::ordered_json known(const std::optional<T>& value) {
  if constexpr (std::is_same_v<T, Moment>)
    return value ? moment_json(*value) : nlohmann::ordered_json();
  else
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}
nlohmann::ordered_json list_json(const std::vector<double>& values);  // null without any
nlohmann::ordered_json curve_json(const GroupCurve& curve);
nlohmann::ordered_json dip_json(const DipTest& test);
nlohmann::ordered_json decided(const DipTest& test);  // whether it found two populations; null when it could not tell
nlohmann::ordered_json steps_json(const Basis& basis);
// The answer in words and what it rests on; an answer's own numbers follow.
nlohmann::ordered_json answer_json(const std::string& sentence, const Basis& basis);

}  // namespace headscope
