#include "study/study_options.h"

#include <algorithm>
#include <set>

#include "core/bounds.h"
#include "core/lists.h"
#include "study/own_conditions.h"

namespace headscope {
namespace {

constexpr std::array<std::string_view, 3> changed_in_training = {"train.qk_gain", "train.clip",
                                                                 "train.max_abs_penalty"};

// Conditions share the data, the batches and the moments of measurement, and their layers are compared one by one.
bool may_change(std::string_view key) {
  if (key == "model.layers" || key == "model.vocabulary") return false;
  return key.starts_with("model.") || key.starts_with("optim.") ||
         std::ranges::find(changed_in_training, key) != changed_in_training.end();
}

}  // namespace

void validate(const StudyOptions& options) {
  validate(static_cast<const Setup&>(options));
  validate(options.track);
  if (!MetricSelection(options.track.metrics, "track.metrics").has("k_pr"))
    fail_input("track.metrics is '{}'; expected k_pr among them: the verdict rests on it", options.track.metrics);
  check_ranges(options);
  seeds_of(options);
  for (const Condition& condition : conditions_of(options)) {
    const Setup setup = setup_of(options, condition);
    const std::string where = "condition " + condition.tag;
    at_place(where, [&] { validate(setup); });
    for (const auto& [key, value] : condition.changes)
      if (!may_change(key))
        fail_input(
            "{}: {} is the same in all conditions, which share data, batches and probes; a condition may change "
            "model.* "
            "but for model.layers and model.vocabulary, optim.*, {}",
            where, key, fmt::join(changed_in_training, ", "));
  }
}

std::vector<std::uint64_t> seeds_of(const StudyOptions& options) {
  constexpr std::int64_t most_seeds = 1000;  // a folder each; intervals hardly shrink any more
  std::vector<std::uint64_t> seeds;
  for (const std::string& part : comma_separated(options.seeds)) {
    std::uint64_t seed = 0;
    if (!parse_value(part, seed))
      fail_input("study.seeds is '{}'; expected whole numbers, comma-separated", options.seeds);
    if (std::find(seeds.begin(), seeds.end(), seed) != seeds.end())
      fail_input("study.seeds is '{}'; {} is there twice, a seed counts once", options.seeds, seed);
    seeds.push_back(seed);
  }
  check_size("the number of study.seeds", static_cast<std::int64_t>(seeds.size()), 1, most_seeds);
  return seeds;
}

std::vector<Condition> own_conditions_of(const StudyOptions& options) {
  return parse_conditions(options.own_conditions, "study.own_conditions");
}

std::vector<Condition> conditions_of(const StudyOptions& options) {
  std::vector<Condition> known = known_conditions();
  std::vector<std::string> names;
  for (Condition& own : own_conditions_of(options)) known.push_back(std::move(own));
  for (const Condition& condition : known) names.push_back(condition.tag);
  std::set<std::size_t> chosen;
  for (const std::string& part : comma_separated(options.conditions)) {
    const auto found = std::ranges::find_if(
        known, [&](const Condition& condition) { return part == condition.tag || part == condition.letter; });
    if (found == known.end()) fail_input("study.conditions: {}", unknown_name("condition", part, names));
    if (!chosen.insert(static_cast<std::size_t>(found - known.begin())).second)
      fail_input("study.conditions is '{}'; {} is there twice, a condition counts once", options.conditions,
                 found->tag);
  }
  std::vector<Condition> conditions;
  for (const std::size_t i : chosen) conditions.push_back(known[i]);
  return conditions;
}

Setup setup_of(const StudyOptions& options, const Condition& condition) {
  Setup setup = options;
  for (const auto& [key, value] : condition.changes) apply(setup, {key, value, "condition " + condition.tag});
  return setup;
}

std::int64_t count_trainings(const StudyOptions& options) {
  return static_cast<std::int64_t>(seeds_of(options).size() * conditions_of(options).size());
}

}  // namespace headscope
