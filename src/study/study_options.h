// What a study is made of: one setup, trained in several conditions from several seeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heads/metrics.h"
#include "settings/setup.h"
#include "study/conditions.h"
#include "study/effects.h"

namespace headscope {

// The keys that differ between the conditions: they are not for a study to set.
constexpr bool varies_between_conditions(std::string_view key) {
  return key == "model.qk_norm" || key == "train.qk_gain";
}

struct StudyOptions : Setup {
  std::string seeds = "42";  // as in the source study
  std::string conditions = fmt::format("{},{},{}", condition_tags[0], condition_tags[1], condition_tags[2]);
  std::string own_conditions = {};  // of the user: study/own_conditions.h
  double tau = default_tau;         // smaller differences of the mean key PR count as none
  TrackOptions track{.every = 0, .metrics = "k_pr,other_rank,score_std,gain"};  // what the verdict needs

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    Setup::fields(self, [&](const char* name, auto& value, const char* meaning, const auto&... range) {
      if (!varies_between_conditions(name)) visit(name, value, meaning, range...);
    });
    visit("study.seeds", self.seeds, "Seeds of weights and order of the data, comma-separated");
    visit("study.conditions", self.conditions,
          "Conditions to train: tags or files (.yaml) with your own, comma-separated");
    visit("study.own_conditions", self.own_conditions,
          "Your own conditions: YAML, TAG: {letter, name, changes, isolates}");
    visit("study.tau", self.tau, "Smaller differences of the mean key PR count as none", tau_range);
    TrackOptions::fields(self.track, visit);
  }
};

// Throws Error(Fault::input) naming the key on values that make no sense.
void validate(const StudyOptions& options);

std::vector<std::uint64_t> seeds_of(const StudyOptions& options);

// In the order of known_conditions(), then those of the user's own.
std::vector<Condition> conditions_of(const StudyOptions& options);

// Those that the user defines, whether they are trained or not.
std::vector<Condition> own_conditions_of(const StudyOptions& options);

// What a condition is trained with. Throws Error(Fault::input) naming the key that a change cannot set.
Setup setup_of(const StudyOptions& options, const Condition& condition);

// Trainings in all: one for each condition of each seed.
std::int64_t count_trainings(const StudyOptions& options);

}  // namespace headscope
