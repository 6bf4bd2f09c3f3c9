// The steps, probes and events of a training.
#include "core/lists.h"
#include "page/index_parts.h"

namespace headscope {

using nlohmann::ordered_json;

ordered_json steps_json(const ReportRun& run, IndexParts& parts) {
  if (run.steps.empty()) return nullptr;
  NumberColumns columns{
      {"step", "tokens", "loss", "loss_min", "loss_max", "lr", "adamw_lr", "grad_norm", "tokens_per_s"}, {}};
  columns.values.resize(columns.names.size());
  for (const StepBucket& bucket : run.steps) {
    const StepRow& row = bucket.last;
    const double values[] = {static_cast<double>(row.moment.step),
                             static_cast<double>(row.moment.tokens),
                             row.loss,
                             bucket.loss_min,
                             bucket.loss_max,
                             row.lr,
                             row.adamw_lr,
                             row.grad_norm,
                             row.tokens_per_s};
    for (std::size_t i = 0; i < columns.values.size(); ++i) columns.values[i].push_back(values[i]);
  }
  return parts.columns(columns);
}

ordered_json probes_json(const ReportRun& run) {
  if (run.probes.empty()) return nullptr;
  ordered_json object = {{"step", ordered_json::array()},
                         {"tokens", ordered_json::array()},
                         {"loss", ordered_json::array()},
                         {"val_loss", ordered_json::array()}};
  for (const std::size_t i : evenly_spaced(run.probes.size(), most_step_buckets)) {
    const ProbeLosses& probe = run.probes[i];
    object["step"].push_back(probe.moment.step);
    object["tokens"].push_back(probe.moment.tokens);
    object["loss"].push_back(rounded_to_float(probe.train));
    object["val_loss"].push_back(rounded_to_float(probe.validation));
  }
  return object;
}

ordered_json events_json(const ReportRun& run, IndexParts& parts) {
  ordered_json events = ordered_json::array();
  for (const TrainingEvent& event : run.events)
    events.push_back({{"time", event.time},
                      {"step", event.moment.step},
                      {"tokens", event.moment.tokens},
                      {"kind", event.kind},
                      {"text", event.text}});
  if (run.events_left_out > 0) parts.say(fmt::format("{}: events before the last {}", run.name, most_events));
  return events;
}

}  // namespace headscope
