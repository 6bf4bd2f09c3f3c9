// The verdict of a study: conditions, effects, their course, other measures.
#include "page/index_parts.h"
#include "study/verdict.h"

namespace headscope {

using nlohmann::ordered_json;

std::vector<const Effect*> total_first(const Verdict& verdict) {
  std::vector<const Effect*> effects;
  if (const Effect* total = verdict.find("total")) effects.push_back(total);
  for (const Effect& effect : verdict.effects)
    if (effects.empty() || &effect != effects.front()) effects.push_back(&effect);
  return effects;
}

ordered_json study_json(const ReportStudy& report) {
  const StudyResult& result = report.result;
  const Verdict& verdict = result.verdict;
  const ordered_json all = verdict_json(result);
  ordered_json seeds = ordered_json::array(), conditions = ordered_json::array(), effects = ordered_json::array();
  for (const SeedRuns& seed : report.study.seeds) seeds.push_back(seed.name);
  for (std::size_t i = 0; i < verdict.conditions.size(); ++i) {
    const ConditionValues& values = verdict.conditions[i];
    if (values.runs == 0) continue;
    const MeanInterval mean = verdict.mean_pr(i);
    conditions.push_back({{"tag", values.condition.tag},
                          {"letter", values.condition.letter},
                          {"name", values.condition.name},
                          {"mean", mean.mean},
                          {"low", mean.low},
                          {"high", mean.high},
                          {"collapse", finite_mean(values.collapse()).mean},
                          {"values", values.end}});
  }
  ordered_json by_layer = ordered_json::object();
  for (const Effect* one : total_first(verdict)) {
    const Effect& effect = *one;
    ordered_json object = {{"name", effect.contrast.name}, {"pair", pair_text(verdict, effect.contrast)}};
    ordered_json numbers = all.at("effects").at(effect.contrast.name);
    numbers.erase("by_layer");
    object.update(numbers);
    effects.push_back(std::move(object));
    ordered_json layers = {{"difference", ordered_json::array()},
                           {"error", ordered_json::array()},
                           {"low", ordered_json::array()},
                           {"high", ordered_json::array()}};
    for (const MeanInterval& layer : result.details[static_cast<std::size_t>(one - verdict.effects.data())].layers) {
      layers["difference"].push_back(layer.mean);
      layers["error"].push_back(layer.standard_error);
      layers["low"].push_back(layer.low);
      layers["high"].push_back(layer.high);
    }
    by_layer[effect.contrast.name] = std::move(layers);
  }
  ordered_json tokens = ordered_json::array(), conclusions = ordered_json::array(), courses = ordered_json::object();
  for (const Reading& reading : result.over_time) {
    tokens.push_back(reading.tokens);
    conclusions.push_back(conclusion_name(reading.verdict.conclusion));
    for (const Effect& effect : verdict.effects) {
      const Effect* then = reading.verdict.find(effect.contrast.name);
      ordered_json& course = courses[effect.contrast.name];
      course["difference"].push_back(then != nullptr ? then->test.difference.mean : missing);
      course["low"].push_back(then != nullptr ? then->test.difference.low : missing);
      course["high"].push_back(then != nullptr ? then->test.difference.high : missing);
    }
  }
  ordered_json measures = ordered_json::array();
  for (const MeasureVerdict& measure : result.measures) {
    ordered_json object = {{"name", measure.name}};
    object.update(all.at("measures").at(measure.name));
    measures.push_back(std::move(object));
  }
  return {{"name", report.name},
          {"tau", verdict.tau},
          {"conclusion", conclusion_name(verdict.conclusion)},
          {"sentence", verdict.sentence},
          {"descriptive", verdict.descriptive},
          {"kill_criterion", or_null(verdict.kill_criterion)},
          {"kill_supported", or_null(verdict.kill_supported)},
          {"tokens", result.tokens},
          {"seeds", std::move(seeds)},
          {"conditions", std::move(conditions)},
          {"effects", std::move(effects)},
          {"over_time",
           {{"tokens", std::move(tokens)}, {"effects", std::move(courses)}, {"conclusion", std::move(conclusions)}}},
          {"by_layer", std::move(by_layer)},
          {"measures", std::move(measures)}};
}

}  // namespace headscope
