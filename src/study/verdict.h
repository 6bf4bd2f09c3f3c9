// What a study found: the gain, the normalisation, both or neither (docs/study.md).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stats/welch.h"
#include "study/conditions.h"

namespace headscope {

// The study plan's kill criterion: a difference of mean PR below 1 is none.
constexpr double default_tau = 1.0;

enum class Conclusion {
  gamma,          // A != B ~ C: the learned gain does it
  normalisation,  // A ~ B != C: the normalisation does it
  both,           // A != B and B != C
  none,           // A ~ B ~ C, all pairs within tau, with several seeds by their intervals, too
  inconclusive,   // a condition is missing, the pairs contradict each other, or the seeds scatter too much to tell
};
std::string_view conclusion_name(Conclusion conclusion);

// The difference of two conditions.
struct PairEffect {
  WelchTest test;            // NaN but for the difference, with one seed on a side
  bool tested = false;       // two or more seeds on both sides
  bool reaches_tau = false;  // |difference| >= tau
  bool within_tau = false;   // |difference| < tau and, where there is a test, so is the whole 95 % interval
  [[nodiscard]] bool significant() const { return test.p_value < 0.05; }
  // By the threshold and, where there is a test, by the test as well.
  [[nodiscard]] bool differs() const { return reaches_tau && (!tested || significant()); }
};

struct Verdict {
  double tau = default_tau;
  PerCondition<MeanInterval> mean_pr;      // over seeds; n = 0: the condition is missing
  std::optional<PairEffect> gamma_effect;  // A - B
  std::optional<PairEffect> norm_effect;   // B - C
  std::optional<PairEffect> total_effect;  // A - C
  std::optional<bool> kill_criterion;      // |A - B| < tau: a null result for the gain
  Conclusion conclusion = Conclusion::inconclusive;
  std::string sentence;  // the same for people
};

// `mean_pr`: of each seed at the end, for A, B and C; values that are not finite do not count. tau > 0.
Verdict decide(PerCondition<std::vector<double>> mean_pr, double tau = default_tau);

// A mean with half of its 95 % interval: "65.70 ± 0.31"; "65.70" of one value, "65.70 (all equal)" without spread, "-"
// without any. More digits where the half would read 0.
std::string mean_text(const MeanInterval& value, int digits);

// "none (no difference of at least τ = 1)"
std::string conclusion_text(const Verdict& verdict);

// "one seed", "3 seeds", "2 to 3 seeds"
std::string seeds_text(const Verdict& verdict);

// mean_pr, gamma_effect, norm_effect, tau, kill_criterion, conclusion, sentence; with several seeds also `seeds`
// (interval of each condition) and `tests` (Welch's test of each pair). What is not known is null.
nlohmann::ordered_json to_json(const Verdict& verdict);

}  // namespace headscope
