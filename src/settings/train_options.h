// How a model is trained: the optimizers, their learning rate, and all other choices.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/config.h"

namespace headscope {

// Of sequences, tokens of a sequence, forward steps and batches: beyond any memory, and three of them multiplied fit in
// 64 bits.
constexpr std::int64_t most_of_a_batch = std::int64_t{1} << 20;

struct MuonOptions {
  double momentum = 0.95;
};

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.2;
};

struct SameAsWeightDecay {
  static constexpr std::string_view text = "weight_decay";
};

struct OptimizerOptions {
  double muon_lr = 0.02;
  double adamw_lr = 0.005;
  MuonOptions muon;
  AdamWOptions adamw;
  // One decay for everything that AdamW trains, as in the source study, unless these say otherwise.
  NumberOr<SameAsWeightDecay> gain_decay, embedding_decay;
  double gain_decay_target = 0;  // decay pulls the gains of QK-Norm towards it

  [[nodiscard]] double decay_of_gains() const { return gain_decay.number.value_or(adamw.weight_decay); }
  [[nodiscard]] double decay_of_embedding() const { return embedding_decay.number.value_or(adamw.weight_decay); }
};

enum class Schedule { constant, cosine };
template <>
struct EnumNames<Schedule> {
  static constexpr std::array<std::string_view, 2> names = {"constant", "cosine"};
};

struct ScheduleOptions {
  Schedule kind = Schedule::constant;
  std::int64_t warmup_steps = 0;  // the factor rises linearly to 1
  double final_share = 0.1;       // cosine ends here
};

// QK-Norm's gains: trained like the other gains, or fixed at 1.
enum class QkGain { learned, fixed };
template <>
struct EnumNames<QkGain> {
  static constexpr std::array<std::string_view, 2> names = {"learned", "fixed"};
};

struct TrainOptions {
  std::int64_t tokens = 614'400;  // 150 steps of the smallest preset
  std::int64_t batch = 16;        // sequences of one forward step
  std::int64_t seq_len = 256;
  std::int64_t accumulation = 1;  // forward steps of one update
  double clip = 1.0;              // of the gradient's norm, as in the source study
  OptimizerOptions optim;
  ScheduleOptions schedule;  // constant in the source study
  QkGain qk_gain = QkGain::learned;
  std::int64_t probe_every = 10;        // forward steps
  std::int64_t validation_batches = 4;  // as in the source study
  std::int64_t checkpoint_every = 50;   // updates
  std::int64_t keep_checkpoints = 2;    // one to go on from, one more in case of damage
  // On a GPU. deterministic: the same run twice gives the same numbers. recompute: of each layer only its input is
  // kept.
  bool deterministic = false, recompute = false;
  // Added to the loss, times the mean over keys of max|k_i|: does it prevent outliers and sinks (seed 002)?
  double max_abs_penalty = 0;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    constexpr std::int64_t most_kept = 1'000'000;  // checkpoints: more folders in a folder than is sane
    constexpr NumberRange rate = positive_up_to(largest_float), decay = {0, 1, false, false};
    visit("train.tokens", self.tokens, "Tokens to train on, in whole updates", SizeRange{1, most_tokens, "tokens"});
    visit("train.batch", self.batch, "Sequences of one forward step", SizeRange{1, most_of_a_batch, "sequences"});
    visit("train.seq_len", self.seq_len, "Length of a sequence", SizeRange{1, most_of_a_batch, "tokens"});
    visit("train.accumulation", self.accumulation, "Forward steps of one update",
          SizeRange{1, most_of_a_batch, "forward steps"});
    visit("train.clip", self.clip, "Limit of the gradient's norm", rate);
    visit("train.qk_gain", self.qk_gain, "Gains of QK-Norm: learned, or fixed at 1");
    visit("train.probe_every", self.probe_every, "Between measurements on the fixed held-out batch",
          SizeRange{1, most_tokens, "forward steps"});
    visit("train.validation_batches", self.validation_batches, "Fixed batches of the validation loss",
          SizeRange{1, most_of_a_batch, "batches"});
    visit("train.checkpoint_every", self.checkpoint_every, "Between checkpoints", SizeRange{1, most_tokens, "updates"});
    visit("train.keep_checkpoints", self.keep_checkpoints, "Newest checkpoints that are kept",
          SizeRange{1, most_kept, "checkpoints"});
    visit("train.max_abs_penalty", self.max_abs_penalty, "Weight of the mean of max|k_i| in the loss; 0: no penalty",
          zero_up_to(largest_float));
    visit("train.deterministic", self.deterministic,
          "On a GPU: the same run twice gives the same numbers, and a resumed one, too; slower. On a CPU it is always "
          "so");
    visit("train.recompute", self.recompute,
          "On a GPU: compute each layer a second time in the backward pass instead of keeping it; less memory, slower");
    visit("optim.muon_lr", self.optim.muon_lr, "Learning rate of Muon, for the matrices of the layers", rate);
    visit("optim.adamw_lr", self.optim.adamw_lr, "Learning rate of AdamW, for the embedding and the gains", rate);
    visit("optim.momentum", self.optim.muon.momentum, "Momentum of Muon", NumberRange{0, 1, true, false});
    visit("optim.beta1", self.optim.adamw.beta1, "AdamW: decay of the first moment", decay);
    visit("optim.beta2", self.optim.adamw.beta2, "AdamW: decay of the second moment", decay);
    visit("optim.eps", self.optim.adamw.eps, "AdamW: added to the root of the second moment", rate);
    visit("optim.weight_decay", self.optim.adamw.weight_decay, "AdamW: weight decay", zero_up_to(largest_float));
    visit("optim.gain_decay", self.optim.gain_decay,
          "AdamW: weight decay of QK-Norm's gains; weight_decay: that of optim.weight_decay",
          zero_up_to(largest_float));
    visit("optim.gain_decay_target", self.optim.gain_decay_target, "Where weight decay pulls QK-Norm's gains to",
          zero_up_to(largest_float));
    visit("optim.embedding_decay", self.optim.embedding_decay,
          "AdamW: weight decay of the embedding; weight_decay: that of optim.weight_decay", zero_up_to(largest_float));
    visit("optim.schedule", self.schedule.kind, "How the learning rates change after the warm-up");
    visit("optim.warmup_steps", self.schedule.warmup_steps, "Linear warm-up of the learning rates",
          SizeRange{0, most_tokens, "updates"});
    visit("optim.final_share", self.schedule.final_share,
          "cosine: the last learning rate, as a share of the highest one", zero_up_to(largest_float));
  }

  // Of options that validate() accepts.
  [[nodiscard]] std::int64_t tokens_per_step() const { return batch * seq_len * accumulation; }
  [[nodiscard]] std::int64_t steps() const { return tokens / tokens_per_step(); }
  // Whether a probe is made when so many updates are done.
  [[nodiscard]] bool probes_at(std::int64_t step) const {
    return step * accumulation % probe_every == 0 || step == steps();
  }
};

// Throws Error(Fault::input) naming the key on values that make no sense.
void validate(const TrainOptions& options);

}  // namespace headscope
