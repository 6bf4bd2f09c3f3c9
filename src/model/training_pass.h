// The forward and backward pass of training written out. It computes what next_token_loss and autograd compute, with
// fewer passes over memory and nothing to wait for: on a GPU it can be recorded once and replayed
// (train/device_updates.h).
#pragma once

#include <functional>

#include "model/decoder.h"
#include "ops/head_rotation.h"
#include "ops/part_timer.h"
#include "ops/partial_sums.h"

namespace headscope {

class TrainingPass {
 public:
  struct Options {
    at::ScalarType type = at::kFloat;  // of activations
    bool deterministic = false;        // sums have a fixed order
    bool recompute = false;            // of each layer only its input is kept; the rest is computed a second time
  };

  // The decoders that it can train: the source study's, of any size, with and without QK-Norm.
  static bool supports(const DecoderConfig& config);

  // Keeps the weights in the type of activations; whoever changes the model's has to keep `copies` equal. The model's
  // parameters must have their gradients (.grad()) before the first run; gradients are added there.
  TrainingPass(const Decoder& model, const Options& options);

  // A forward step of an update.
  struct Part {
    double share = 1;   // of the loss
    bool first = true;  // gradients of before do not count: nobody has to clear them
  };
  // Of a layer whose matrices have their gradients: from the last layer to the first.
  using LayerDone = std::function<void(std::int64_t layer)>;
  // Adds share · mean loss of the batch to `loss` (a scalar) and its gradients to those of the parameters. `observe`
  // sees every layer, after its attention.
  void run(const at::Tensor& tokens_bt, const at::Tensor& targets_bt, const Part& part, at::Tensor& loss,
           const Observe& observe = {}, const LayerDone& layer_done = {});

  // Times the parts of every run from now on; null: no longer.
  void time_parts(PartTimer* timer) { timer_ = timer; }

  // The weights in the type of activations, by the name of the parameter. Empty where they are the parameters
  // themselves.
  [[nodiscard]] NamedTensors copies() const;

 private:
  // The matrices of a layer in the type of activations.
  struct Matrices {
    at::Tensor qkv, output, up, down;
  };
  // What the backward pass of a layer needs of its forward pass.
  struct Layer {
    at::Tensor x_nm, h_nm, inverse;  // the residual stream, normed, and the norm's factor
    at::Tensor qkv_bthd;
    RotatedHeads heads;
    Attended attended;
    at::Tensor middle_nm, middle_h_nm, middle_inverse;  // the same of the stream behind attention
    at::Tensor inner_nf;                                // the activation
  };
  // A residual stream whose last summand has not been added yet.
  struct Stream {
    at::Tensor x_nm, delta_nm;
  };

  [[nodiscard]] Layer forward(std::int64_t index, const Stream& stream, Stream& behind, const Observe& observe) const;
  // d_nm: gradient of the stream behind the layer; becomes that of the stream in front of it.
  void backward(std::int64_t index, const Layer& layer, at::Tensor& d_nm);
  [[nodiscard]] HeadRotation rotation(std::int64_t index) const;
  void done(const char* part) const {
    if (timer_ != nullptr) timer_->done(part);
  }
  void add_later(const at::Tensor& gain, const at::Tensor& parts) { gain_sums_.push_back({gain.grad(), parts}); }

  const Decoder& model_;
  Options options_;
  at::Tensor embedding_;
  std::vector<Matrices> matrices_;
  std::int64_t b_ = 0, t_ = 0;  // of the batch
  bool adds_ = false;           // gradients to those of before
  at::Tensor table_;            // of RoPE
  std::vector<PartialSums> gain_sums_;
  PartTimer* timer_ = nullptr;
};

}  // namespace headscope
