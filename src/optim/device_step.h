// An update whose gradients stay in one place and whose host waits for nothing.
#pragma once

#include <utility>
#include <vector>

#include "optim/adamw.h"
#include "optim/matrix_batches.h"
#include "settings/train_options.h"

namespace headscope {

// What an update reads and writes on its device: on a GPU it can be recorded as a CUDA graph.
struct DeviceUpdate {
  at::Tensor lr_factor;  // float32 [], written by the host before
  at::Tensor loss;       // float32 [], of the update
  at::Tensor grad_norm;  // float32 [], written here: before clipping
  at::Tensor sound;      // int32 [], 1; becomes 0 with the first loss or norm that is not finite. At 0 nothing changes.
};

class DeviceStep {
 public:
  // Gives every parameter its gradient. There is one at least. momentum: that of each matrix, [short side, long side],
  // copied.
  DeviceStep(const std::vector<LayerMatrix>& matrices, const NamedTensors& momentum, AdamW adamw,
             const OptimizerOptions& options);

  // Pairs of a parameter and its copy in bfloat16, which every update writes. Copied here, too.
  void keep_copies(std::vector<std::pair<at::Tensor, at::Tensor>> copies);

  // An update: the square of the norm of the gradients, in parts, to which other ranks may add theirs; then the rest.
  void sum_squares();
  [[nodiscard]] const at::Tensor& squares() const { return squares_; }  // float64, to be summed
  void run(const DeviceUpdate& update, double limit);
  // Every copy becomes the rounded parameter again: where others changed the parameters.
  void copy_again() const;

  // Of each matrix, by name, [short side, long side]: views of what an update changes.
  [[nodiscard]] NamedTensors momentum() const;

 private:
  struct Batch {
    MatrixBatch layout;
    at::Tensor gradient, momentum;  // [elements]
    // On a GPU. Tables of chunks (optim/cuda/muon.h), and what is summed for each chunk and matrix.
    at::Tensor momentum_chunks, first_chunk, weight_chunks;
    at::Tensor squares, scale;
  };
  void sum_squares_by_kernel();
  void run_composed(const DeviceUpdate& update, double limit);
  void run_kernels(const DeviceUpdate& update, double limit);
  void muon_composed(const Batch& batch, double lr) const;
  void muon_kernels(const Batch& batch) const;
  void make_tables();
  [[nodiscard]] void* copy_of(const at::Tensor& parameter) const;

  OptimizerOptions options_;
  AdamW adamw_;
  std::vector<Batch> batches_;
  at::Tensor gradients_;  // all of them; what lies between is 0
  at::Tensor squares_;
  std::vector<std::pair<at::Tensor, at::Tensor>> copies_;
  // On a GPU (optim/cuda/update.h, adamw.h).
  at::Tensor control_, decays_, own_steps_, adamw_chunks_;
};

}  // namespace headscope
