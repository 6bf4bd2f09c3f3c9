#include "settings/train_options.h"

#include "core/bounds.h"

namespace headscope {

void validate(const TrainOptions& options) {
  check_ranges(options);
  const Factor batch{"train.batch", options.batch}, seq_len{"train.seq_len", options.seq_len};
  checked_product({batch, seq_len, {"train.accumulation", options.accumulation}}, most_tokens, "tokens");
  checked_product({{"train.validation_batches", options.validation_batches}, batch, seq_len}, most_tokens, "tokens");
  if (options.probe_every % options.accumulation != 0)
    fail_input("train.probe_every is {}, train.accumulation {}; expected a multiple: probes are between updates",
               options.probe_every, options.accumulation);
  if (options.steps() < 1)
    fail_input(
        "train.tokens is {}, one update takes {} (train.batch x train.seq_len x train.accumulation); expected at "
        "least one update",
        options.tokens, options.tokens_per_step());
}

}  // namespace headscope
