// Updates on a GPU that the host does not wait for: the pass that is written out, and the optimizers behind it, recorded
// once as CUDA graphs and replayed.
#pragma once

#include <memory>

#include "model/decoder.h"
#include "optim/optimizers.h"
#include "ops/device.h"
#include "ops/part_timer.h"
#include "probe/probe.h"
#include "settings/train_options.h"

namespace headscope {

class DeviceUpdates {
 public:
  // What an update gave.
  struct Outcome {
    double loss = 0, grad_norm = 0;
  };

  virtual ~DeviceUpdates() = default;

  // Queues an update: batch(i) gives forward step i of options.accumulation. `observe` sees the first one. Copies of the
  // host's memory are made before it returns.
  virtual void launch(const std::function<Batch(std::int64_t)>& batch, double lr_factor, const Observe& observe) = 0;
  // Of the oldest update that was launched and not asked for yet; waits for it. An update whose loss or norm is not finite
  // changes nothing, and none behind it does.
  virtual Outcome wait() = 0;
  // To be called when the parameters were changed by others.
  virtual void parameters_changed() = 0;
  // Times the parts of updates, which are then queued one by one; null: no longer.
  virtual void time_parts(PartTimer* timer) = 0;
};

// Null where updates are made by autograd: on a CPU, and for what TrainingPass does not support. Both must outlive it.
std::unique_ptr<DeviceUpdates> make_device_updates(const Decoder& model, Optimizers& optimizers,
                                                   const TrainOptions& options, const ComputeDevice& device);

}  // namespace headscope
