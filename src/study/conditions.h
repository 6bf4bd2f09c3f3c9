// The conditions of the causal QK-Norm study (seed 004) and what their differences show. No other file defines them.
#pragma once

#include <array>
#include <string_view>

namespace headscope {

struct Condition {
  std::string_view letter;  // in sentences and tables
  std::string_view tag;     // the name of its folder, and `tag` in results.json
  std::string_view name;    // in the legend of a figure
  bool normalised;          // queries and keys are RMS-normalised
  bool gain_learned;        // otherwise the gain stays 1
};

constexpr std::size_t n_conditions = 3;
// A place in this list is the condition's index everywhere, and its colour in every figure.
constexpr std::array<Condition, n_conditions> study_conditions = {{
    {"A", "QK", "A learned γ", true, true},
    {"B", "QK_frozen", "B γ = 1", true, false},
    {"C", "NoQK", "C no QK-Norm", false, false},
}};

// A value for each condition, in their order.
template <class T>
using PerCondition = std::array<T, n_conditions>;

constexpr auto of_each_condition(std::string_view Condition::*text) {
  PerCondition<std::string_view> texts;
  for (std::size_t i = 0; i < n_conditions; ++i) texts[i] = study_conditions[i].*text;
  return texts;
}
constexpr auto condition_tags = of_each_condition(&Condition::tag);
constexpr auto study_condition_names = of_each_condition(&Condition::name);

// Two conditions that differ in one thing. The effect of that thing is the value of `with` less that of `without`.
struct Contrast {
  std::string_view cause;  // the subject of a sentence
  std::size_t with, without;
};
constexpr Contrast gamma_contrast{"learning γ", 0, 1};
constexpr Contrast norm_contrast{"normalisation", 1, 2};
constexpr Contrast total_contrast{"QK-Norm as a whole", 0, 2};

}  // namespace headscope
