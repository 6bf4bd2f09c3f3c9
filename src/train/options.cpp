#include "train/options.h"

#include "tracks/metrics.h"

namespace headscope {

void validate(const TrainOptions& options) {
  TrainOptions::fields(options, [](std::string_view name, const auto& value, const char*) {
    using T = std::remove_cvref_t<decltype(value)>;
    const bool may_be_zero = name == "optim.warmup_steps" || name == "optim.weight_decay" || name == "optim.momentum" ||
                             name == "optim.final_share" || name == "train.max_abs_penalty";
    if constexpr (std::is_arithmetic_v<T>)
      if (!(value > T(0) || (may_be_zero && value == T(0))))
        fail_input("{} is {}; expected {}", name, value, may_be_zero ? "0 or more" : "more than 0");
  });
  const auto below_one = [](const char* key, double value) {
    if (!(value < 1)) fail_input("{} is {}; expected less than 1", key, value);
  };
  below_one("optim.momentum", options.optim.muon.momentum);
  below_one("optim.beta1", options.optim.adamw.beta1);
  below_one("optim.beta2", options.optim.adamw.beta2);
  if (options.probe_every % options.accumulation != 0)
    fail_input("train.probe_every is {}, train.accumulation {}; expected a multiple: probes are between updates",
               options.probe_every, options.accumulation);
  if (options.steps() < 1)
    fail_input(
        "train.tokens is {}, one update takes {} (train.batch x train.seq_len x train.accumulation); expected at "
        "least one update",
        options.tokens, options.tokens_per_step());
}

void validate(const TrackOptions& options) {
  if (options.every < 0) fail_input("track.every is {}; expected 0 or more", options.every);
  MetricSelection(options.metrics, "track.metrics");
}

}  // namespace headscope
