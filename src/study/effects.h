// Effects: differences of two conditions over the seeds that have both, and how sure they are (docs/study.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/bounds.h"
#include "stats/paired_test.h"
#include "study/conditions.h"

namespace headscope {

// The study plan's kill criterion: a difference of mean PR below 1 is none.
constexpr double default_tau = 1.0;
// No PR is larger than this end of the range, and no run is measured as finely as the other.
constexpr NumberRange tau_range = {1e-6, 1e6};
constexpr double significance = 0.05;
// With fewer, no choice of signs has a share below 5 %.
constexpr std::size_t fewest_flips = 6;

enum class Outcome { different, equivalent, undecided };
std::string_view outcome_name(Outcome outcome);

// What was measured of one condition: a value for each seed of the study, NaN where the seed has no run or it diverged.
struct ConditionValues {
  Condition condition;
  std::vector<double> end;    // mean PR where conditions are compared
  std::vector<double> start;  // mean PR at the first probe
  std::size_t runs = 0;       // diverged ones included

  [[nodiscard]] std::vector<double> collapse() const;  // start - end
};

// Those of the condition, which must be there.
const ConditionValues& values_of(const std::vector<ConditionValues>& conditions, const std::string& tag);

struct Effect {
  Contrast contrast;
  PairedTest test;                 // of first - second; NaN but for the difference, with one pair
  double collapse_difference = 0;  // mean collapse of the first - that of the second, over the same pairs
  double p_holm = 0;               // of test.p_value in its family
  double p_sign_flip = 0;          // NaN below fewest_flips
  Outcome outcome = Outcome::undecided;

  [[nodiscard]] double difference() const { return test.difference.mean; }
  [[nodiscard]] std::size_t pairs() const { return test.difference.n; }
  [[nodiscard]] bool is_different() const { return outcome == Outcome::different; }
  [[nodiscard]] bool is_equivalent() const { return outcome == Outcome::equivalent; }
  // "protects", "worsens", "does nothing", "undecided"
  [[nodiscard]] std::string_view word() const;
};

// Differences of two lists, where both are finite.
std::vector<double> paired_differences(const std::vector<double>& first, const std::vector<double>& second);

// Those of the contrasts both of whose conditions have runs. A pair of conditions is different when p_holm < 5 % and
// |difference| >= tau, equivalent when p_equivalence < 5 %, otherwise undecided. `descriptive`: there is one seed, and
// |difference| >= tau alone decides.
std::vector<Effect> effects_of(const std::vector<ConditionValues>& conditions, double tau, bool descriptive);

// The effect of that name; null: it is not there.
const Effect* find_effect(const std::vector<Effect>& effects, std::string_view name);

}  // namespace headscope
