#include "settings/train_options.h"

#include "core/bounds.h"

namespace headscope {
namespace {

// Of sequences, tokens of a sequence, forward steps and batches: beyond any memory, and three of them multiplied fit
// in 64 bits.
constexpr std::int64_t most_of_a_batch = std::int64_t{1} << 20;
constexpr std::int64_t most_kept = 1'000'000;  // checkpoints: more folders in a folder than is sane

void validate_optimizers(const TrainOptions& options) {
  const OptimizerOptions& optim = options.optim;
  const NumberRange rate = positive_up_to(largest_float), share = {0, 1, true, false}, decay = {0, 1, false, false};
  check_number("optim.muon_lr", optim.muon_lr, rate);
  check_number("optim.adamw_lr", optim.adamw_lr, rate);
  check_number("optim.momentum", optim.muon.momentum, share);
  check_number("optim.beta1", optim.adamw.beta1, decay);
  check_number("optim.beta2", optim.adamw.beta2, decay);
  check_number("optim.eps", optim.adamw.eps, rate);
  check_number("optim.weight_decay", optim.adamw.weight_decay, zero_up_to(largest_float));
  check_size("optim.warmup_steps", options.schedule.warmup_steps, 0, most_tokens);  // a step has a token at least
  check_number("optim.final_share", options.schedule.final_share, zero_up_to(largest_float));
}

}  // namespace

void validate(const TrainOptions& options) {
  check_size("train.tokens", options.tokens, 1, most_tokens);
  check_size("train.batch", options.batch, 1, most_of_a_batch);
  check_size("train.seq_len", options.seq_len, 1, most_of_a_batch);
  check_size("train.accumulation", options.accumulation, 1, most_of_a_batch);
  check_number("train.clip", options.clip, positive_up_to(largest_float));
  check_size("train.probe_every", options.probe_every, 1, most_tokens);
  check_size("train.validation_batches", options.validation_batches, 1, most_of_a_batch);
  check_size("train.checkpoint_every", options.checkpoint_every, 1, most_tokens);
  check_size("train.keep_checkpoints", options.keep_checkpoints, 1, most_kept);
  check_number("train.max_abs_penalty", options.max_abs_penalty, zero_up_to(largest_float));
  validate_optimizers(options);
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
