// What a study found: the gain, the normalisation, both or neither (docs/study.md).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "study/effects.h"

namespace headscope {

// By the outcomes of A - B, B - C and A - C: D different, E equivalent, U undecided.
enum class Conclusion {
  gamma,          // DED, DEU: the learned gain does it
  normalisation,  // EDD, EDU: the normalisation does it
  both,           // DDD
  opposed,        // DDE: the effects cancel
  none,           // EEE
  inconclusive,   // all else, and where a condition is missing
};
std::string_view conclusion_name(Conclusion conclusion);

struct Verdict {
  double tau = default_tau;
  bool descriptive = false;                 // one seed: no difference is tested
  std::vector<ConditionValues> conditions;  // A, B and C, also without runs, then others
  std::vector<Effect> effects;              // where both conditions have runs
  std::optional<bool> kill_criterion;       // |A - B| < tau: a null result for the gain, by the means alone
  std::optional<bool> kill_supported;       // A and B are equivalent
  Conclusion conclusion = Conclusion::inconclusive;
  std::string sentence;  // the same for people

  [[nodiscard]] const Effect* find(std::string_view name) const { return find_effect(effects, name); }
  [[nodiscard]] MeanInterval mean_pr(std::size_t condition) const;  // over the seeds that have one
};

// Values of all conditions are in the order of the same seeds. tau > 0.
Verdict decide(std::vector<ConditionValues> conditions, double tau = default_tau);

// A mean with half of its 95 % interval: "65.70 ± 0.31"; "65.70" of one value, "65.70 (all equal)" without spread, "-"
// without any. More digits where the half would read 0.
std::string mean_text(const MeanInterval& value, int digits);

// A difference of mean PR, never on the other side of tau: "+0.10", "−0.996".
std::string difference_text(double value, double tau);

// "A − B"
std::string pair_text(const Verdict& verdict, const Contrast& contrast);

// "none (no difference of at least τ = 1)"
std::string conclusion_text(const Verdict& verdict);

// Those with a value: "one seed", "3 seeds", "2 to 3 seeds"; "one of 2 seeds" where the runs of the others diverged.
std::string seeds_text(const Verdict& verdict);

// The mean of the finite values with its interval.
MeanInterval finite_mean(std::vector<double> values);

// The fields that docs/study.md lists. What is not known is null.
nlohmann::ordered_json to_json(const MeanInterval& interval);
nlohmann::ordered_json to_json(const Verdict& verdict);

}  // namespace headscope
