#include "plan/memory.h"

#include <algorithm>

namespace headscope {
namespace {

// Of one forward step, what waits for the backward pass, for each token: what autograd's operations keep (ops/), or
// the pass that is written out (model/training_pass.h).
double activation_bytes(const DecoderConfig& c, const StepKind& kind, bool recompute) {
  const auto d = static_cast<double>(c.d_model), ff = static_cast<double>(c.d_ff);
  const auto q = static_cast<double>(c.heads * c.d_k), kv = static_cast<double>(c.kv_heads * c.d_k);
  const double attention = 2 * d + (q + 2 * kv) + (q + kv) + 2 * q;  // input, normed; qkv; turned q and k; output
  const double feed_forward = 2 * d + 3 * ff;                        // input, normed; before and after the activation
  const auto layers = static_cast<double>(c.layers);
  if (!kind.written_out) return layers * (attention + feed_forward) * kind.element + 4 * d * kind.element;
  const double layer = attention - q + feed_forward - 2 * ff + (kind.repeated_keys ? 2 * q - kv : 0);
  const double kept = layers * (recompute ? d : layer);
  return (kept + layer + 2 * ff + 4 * d) * kind.element;  // and one layer at work
}

double logits_bytes(const Setup& setup, const StepKind& kind, double tokens) {
  const auto vocabulary = static_cast<double>(setup.model.vocabulary);
  if (kind.written_out) return std::min(tokens * vocabulary * kind.element, written_out_slice_bytes);
  return 2 * std::min(tokens * vocabulary * 4, autograd_slice_bytes) +
         4 * vocabulary * static_cast<double>(setup.model.d_model);
}

// Numbers of Muon's and AdamW's state: momentum of the matrices, two moments of the rest.
double state_numbers(const ParameterCounts& parameters) {
  return static_cast<double>(parameters.matrices) + 2 * static_cast<double>(parameters.total - parameters.matrices);
}

}  // namespace

StepKind step_on_gpu(const Setup& setup) {
  const DecoderConfig& c = setup.model;
  return {.element = 2,
          .written_out = is_of_the_source_study(c) && setup.train.max_abs_penalty == 0,
          .repeated_keys = c.heads > c.kv_heads && (setup.train.deterministic || c.d_k <= 64)};
}

double training_state_bytes(const ParameterCounts& parameters) {
  return 4 * (2 * static_cast<double>(parameters.total) + state_numbers(parameters));
}

ProcessMemory process_memory(const Setup& setup, const StepKind& kind, const std::optional<UpdateShares>& shares,
                             bool ordered) {
  const ParameterCounts parameters = count_parameters(setup.model);
  const auto total = static_cast<double>(parameters.total), matrices = static_cast<double>(parameters.matrices);
  const auto tokens = static_cast<double>(setup.train.batch * setup.train.seq_len);
  double own_matrices = matrices;
  ProcessMemory memory{.program = 300.0 * (1 << 20),
                       .weights = 4 * total,
                       .copies = kind.element == 4 ? 0 : kind.element * total,
                       .gradients = 4 * total,
                       .state = 4 * state_numbers(parameters)};
  if (shares) {
    const auto own = static_cast<double>(shares->most_own);
    own_matrices = std::min(matrices, own);
    // Without autograd, gradients of what one rank owns whole lie where they are sent from; those of rows do not.
    memory.gradients = kind.written_out ? 4 * (static_cast<double>(parameters.embedding) + own) : 4 * total;
    // What is sent, in order what every rank has for this one, and their sum.
    memory.exchanged = 4 * ((ordered ? 2 : 1) * shares->padded_elements() + static_cast<double>(shares->each_elements));
    memory.state = 4 * static_cast<double>(shares->most_state);
  }
  // Gradients of the matrices stacked, and the iterates of Polar Express.
  const double update = 4 * 4 * own_matrices;
  const double step = activation_bytes(setup.model, kind, setup.train.recompute) * tokens;
  memory.working = std::max(step + logits_bytes(setup, kind, tokens), update);
  return memory;
}

}  // namespace headscope
