// The conditions of the causal QK-Norm study (seed 004) and what their differences show. No other file defines them.
#pragma once

#include <array>
#include <string_view>

#include "run/names.h"

namespace headscope {

struct Condition {
  std::string_view letter;  // in sentences and tables
  std::string_view tag;     // the name of its folder, and `tag` in results.json
  std::string_view name;    // in the legend of a figure
  bool normalised;          // queries and keys are RMS-normalised
  bool gain_learned;        // otherwise the gain stays 1
};

constexpr std::size_t n_conditions = condition_tags.size();
// A place in this list is the condition's index everywhere, and its colour in every figure.
constexpr std::array<Condition, n_conditions> study_conditions = {{
    {"A", condition_tags[0], "A learned γ", true, true},
    {"B", condition_tags[1], "B γ = 1", true, false},
    {"C", condition_tags[2], "C no QK-Norm", false, false},
}};

// A value for each condition, in their order.
template <class T>
using PerCondition = std::array<T, n_conditions>;

constexpr PerCondition<std::string_view> study_condition_names = {study_conditions[0].name, study_conditions[1].name,
                                                                  study_conditions[2].name};

// Two conditions that differ in one thing. The effect of that thing is the value of `with` less that of `without`.
struct Contrast {
  std::string_view cause;  // the subject of a sentence
  std::size_t with, without;
};
constexpr Contrast gamma_contrast{"learning γ", 0, 1};
constexpr Contrast norm_contrast{"normalisation", 1, 2};
constexpr Contrast total_contrast{"QK-Norm as a whole", 0, 2};

}  // namespace headscope
