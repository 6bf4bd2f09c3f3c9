// Updates on a GPU that the host does not wait for: the pass that is written out, and the optimizers behind it,
// recorded once as CUDA graphs and replayed. What ranks exchange is queued between the graphs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "ops/device.h"
#include "ops/part_timer.h"
#include "optim/optimizers.h"
#include "probe/probe.h"
#include "settings/train_options.h"

namespace headscope {

class DeviceUpdates {
 public:
  // What an update gave.
  struct Outcome {
    double loss = 0, grad_norm = 0;
    // Of several ranks:
    bool stop = false;                // a signal asked one of them to stop
    std::vector<double> losses = {};  // of the forward steps, as shares of the loss
    // That each rank took for its last forward step that was over when this update was queued; 0: it was measured.
    std::vector<double> seconds = {};
  };

  virtual ~DeviceUpdates() = default;

  // Queues an update: batch(i) gives forward step i of options.accumulation, in pinned memory of the host; those of
  // this rank are asked for. The first one is measured where a measurer is given, which then has sent what it has. All
  // measurers choose the same.
  virtual void launch(const std::function<Batch(std::int64_t)>& batch, double lr_factor, HeadMeasurer* measurer) = 0;
  // Of the oldest update that was launched and not asked for yet; waits for it. An update whose loss or norm is not
  // finite changes nothing, and none behind it does.
  virtual Outcome wait() = 0;
  // To be called when the parameters were changed by others.
  virtual void parameters_changed() = 0;
  // Times the parts of updates, which are then queued one by one; null: no longer.
  virtual void time_parts(PartTimer* timer) = 0;
};

// Whether updates of such a model are made here; autograd makes them on a CPU, and where TrainingPass does not support
// it.
bool has_device_updates(const DecoderConfig& model, const TrainOptions& options, at::Device device);

// Operations whose sums have no fixed order: two runs differ by rounding.
std::vector<std::string> nondeterministic_operations(const DecoderConfig& model, const TrainOptions& options,
                                                     at::Device device);

// Null where autograd makes them. Model, optimizers, options and ranks must outlive it.
std::unique_ptr<DeviceUpdates> make_device_updates(const Decoder& model, Optimizers& optimizers,
                                                   const TrainOptions& options, const ComputeDevice& device,
                                                   const Ranks& ranks = Ranks::one());

}  // namespace headscope
