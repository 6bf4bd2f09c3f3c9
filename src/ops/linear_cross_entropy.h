// The last layer and its loss in one: mean over tokens of -log softmax(x·Wᵀ)[target], in nats. The logits exist for one
// slice of tokens at a time, and the slice's gradients are taken while they are there: with 49,152 words the logits of
// a batch would be the largest array of a step.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

constexpr std::int64_t logits_slice_bytes = std::int64_t{256} << 20;
constexpr std::int64_t training_slice_bytes = std::int64_t{1} << 30;  // of loss_and_gradients

// x_nm: [tokens, width]; weight_vm: [vocabulary, width], used in the type of x; targets_n: int64. Returns a scalar in
// float32 (float64 for float64). `slice_bytes` bounds the logits of one slice. Where `cap` is not 0, the logits z are
// soft-capped first: cap·tanh(z/cap).
at::Tensor linear_cross_entropy(const at::Tensor& x_nm, const at::Tensor& weight_vm, const at::Tensor& targets_n,
                                std::int64_t slice_bytes = logits_slice_bytes, double cap = 0);

// x·Wᵀ as the loss has it, soft-capped where `cap` is not 0.
at::Tensor capped_logits(const at::Tensor& x_nm, const at::Tensor& weight_vm, double cap);

// The same with its gradients, for code that takes them itself, in one go, as a share of an update: adds share · loss
// to `loss` (a scalar) and the gradient of the head to d_weight_vm (float32 or the type of x; unless it `adds`, what
// was there does not count), and returns the gradient of x. weight_vm is of the type of x.
at::Tensor loss_and_gradients(const at::Tensor& x_nm, const at::Tensor& weight_vm, const at::Tensor& targets_n,
                              double share, at::Tensor& loss, at::Tensor& d_weight_vm, bool adds = true,
                              std::int64_t slice_bytes = training_slice_bytes);

}  // namespace headscope
