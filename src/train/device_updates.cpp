#include "train/device_updates.h"

#ifdef HEADSCOPE_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>

#include <deque>
#endif

#include "model/training_pass.h"

namespace headscope {

bool has_device_updates(const DecoderConfig& model, const TrainOptions& options, at::Device device) {
  return device.is_cuda() && options.max_abs_penalty == 0 && TrainingPass::supports(model);
}

std::vector<std::string> nondeterministic_operations(const DecoderConfig& model, const TrainOptions& options,
                                                     at::Device device) {
  if (!device.is_cuda() || options.deterministic) return {};
  if (has_device_updates(model, options, device)) return {"gradients of attention"};
  return {"gradients of attention", "gradients of the embedding"};
}

#ifdef HEADSCOPE_CUDA
namespace {

using c10::cuda::CUDAEvent;
using c10::cuda::CUDAStream;
namespace allocator = c10::cuda::CUDACachingAllocator;

// Memory of the updates. Those that are recorded and those that are queued one by one take it from one pool, so that
// the activations are there once.
class Pool {
 public:
  explicit Pool(c10::DeviceIndex device) : device_(device), id_(at::cuda::graph_pool_handle()) {
    allocator::createOrIncrefPool(device_, id_);
  }
  ~Pool() { allocator::releasePool(device_, id_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  [[nodiscard]] at::cuda::MempoolId_t id() const { return id_; }

  // While an object lives, the stream takes its memory from the pool.
  class Use {
   public:
    Use(const Pool& pool, const CUDAStream& stream) : pool_(pool) {
      allocator::beginAllocateToPool(pool.device_, pool.id_,
                                     [own = stream.stream()](cudaStream_t other) { return other == own; });
    }
    ~Use() {
      allocator::endAllocateToPool(pool_.device_, pool_.id_);
      allocator::releasePool(pool_.device_, pool_.id_);  // a use counts as one of its owners
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const Pool& pool_;
  };

 private:
  c10::DeviceIndex device_;
  at::cuda::MempoolId_t id_;
};

class GraphedUpdates : public DeviceUpdates {
 public:
  GraphedUpdates(const Decoder& model, Optimizers& optimizers, const TrainOptions& options, const ComputeDevice& device)
      : optimizers_(optimizers),
        options_(options),
        device_(device.device),
        stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.device.index())),
        pool_(device.device.index()),
        pass_(model, {.type = device.type, .deterministic = options.deterministic, .recompute = options.recompute}) {
    optimizers_.keep_gradients();
    parameters_changed();
    const auto scalar = [&](at::ScalarType type) { return at::zeros({}, at::TensorOptions(device_).dtype(type)); };
    update_ = {scalar(at::kFloat), scalar(at::kFloat), scalar(at::kFloat), scalar(at::kInt).fill_(1)};
    const auto tokens = [&] {
      return at::zeros({options.batch, options.seq_len}, at::TensorOptions(device_).dtype(at::kLong));
    };
    batch_ = {tokens(), tokens()};
  }

  void launch(const std::function<Batch(std::int64_t)>& batch, double lr_factor, HeadMeasurer* measurer) override {
    const at::NoGradGuard no_gradients;
    const CUDAStream outside = c10::cuda::getCurrentCUDAStream(device_.index());
    follow(outside, stream_);
    {
      const c10::cuda::CUDAStreamGuard on_stream(stream_);
      if (timer_ != nullptr) timer_->start();
      update_.loss.zero_();
      update_.lr_factor.fill_(lr_factor);
      for (std::int64_t i = 0; i < options_.accumulation; ++i) {
        const Batch host = batch(i);
        batch_.tokens_bt.copy_(host.tokens_bt, /*non_blocking=*/true);
        batch_.targets_bt.copy_(host.targets_bt, /*non_blocking=*/true);
        const bool first = i == 0;
        if (first && measurer != nullptr)
          measured_pass(*measurer);
        else
          replay_or(first ? first_graph_ : next_graph_, records(), [&] { pass(first, {}); });
      }
      optimize();
      ++launched_;
      report();
    }
    follow(stream_, outside);
  }

  Outcome wait() override {
    Report& oldest = reports_.front();
    oldest.event.synchronize();
    const auto* values = oldest.values.const_data_ptr<float>();
    const Outcome outcome{values[0], values[1]};
    reports_.pop_front();
    return outcome;
  }

  void parameters_changed() override { optimizers_.keep_copies(pass_.copies()); }

  void time_parts(PartTimer* timer) override {
    timer_ = timer;
    pass_.time_parts(timer);
  }

 private:
  // The first update is queued operation by operation: the libraries choose their kernels in it. So is one that is
  // timed. Afterwards, everything is recorded when it comes for the first time.
  [[nodiscard]] bool records() const { return launched_ > 0 && timer_ == nullptr; }

  void pass(bool first, const Observe& observe) {
    pass_.run(batch_.tokens_bt, batch_.targets_bt, {1.0 / static_cast<double>(options_.accumulation), first},
              update_.loss, observe);
  }

  // The measurer of the recording keeps the memory that replays write to. Other graphs use it, too: what was measured
  // is sent before anything else is queued.
  void measured_pass(HeadMeasurer& measurer) {
    if (records()) {
      if (!recorded_) recorded_ = std::make_unique<HeadMeasurer>(measurer.chosen());
      HEADSCOPE_CHECK(recorded_->chosen() == measurer.chosen(), "one graph measures one selection");
      replay_or(measured_graph_, true, [&] { pass(true, recorded_->hooks().observe); });
      measurer.observe_as(*recorded_);
    } else {
      replay_or(measured_graph_, false, [&] { pass(true, measurer.hooks().observe); });
    }
    measurer.send();
  }

  void optimize() {
    replay_or(optimizer_graph_, records(), [&] { optimizers_.step(update_, options_.clip); });
    if (timer_ != nullptr) timer_->done("optimizers");
  }

  template <class Work>
  void replay_or(std::unique_ptr<at::cuda::CUDAGraph>& graph, bool recorded, const Work& work) {
    if (!recorded) {
      const Pool::Use from_pool(pool_, stream_);
      work();
      return;
    }
    if (!graph) {
      auto fresh = std::make_unique<at::cuda::CUDAGraph>();
      fresh->capture_begin(pool_.id(), cudaStreamCaptureModeThreadLocal);
      try {
        work();
      } catch (...) {  // out of memory: the stream must not stay in a recording
        try {
          fresh->capture_end();
        } catch (const c10::Error&) {  // what was recorded is not used
        }
        throw;
      }
      fresh->capture_end();
      graph = std::move(fresh);
    }
    graph->replay();
  }

  // Loss and norm go to the host behind the update.
  void report() {
    Report& next = reports_.emplace_back();
    next.values = at::empty({2}, at::TensorOptions(at::kFloat).pinned_memory(true));
    next.values.copy_(at::stack({update_.loss, update_.grad_norm}), /*non_blocking=*/true);
    next.event.record(stream_);
  }

  static void follow(const CUDAStream& first, const CUDAStream& second) {
    CUDAEvent event;
    event.record(first);
    event.block(second);
  }

  struct Report {
    at::Tensor values;
    CUDAEvent event;
  };

  Optimizers& optimizers_;
  const TrainOptions& options_;
  at::Device device_;
  CUDAStream stream_;
  Pool pool_;
  TrainingPass pass_;
  DeviceUpdate update_;
  Batch batch_;
  std::unique_ptr<HeadMeasurer> recorded_;
  std::unique_ptr<at::cuda::CUDAGraph> first_graph_, next_graph_, measured_graph_, optimizer_graph_;
  std::int64_t launched_ = 0;
  std::deque<Report> reports_;
  PartTimer* timer_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceUpdates> make_device_updates(const Decoder& model, Optimizers& optimizers,
                                                   const TrainOptions& options, const ComputeDevice& device) {
  return has_device_updates(model.config, options, device.device)
             ? std::make_unique<GraphedUpdates>(model, optimizers, options, device)
             : nullptr;
}
#else
std::unique_ptr<DeviceUpdates> make_device_updates(const Decoder&, Optimizers&, const TrainOptions&,
                                                   const ComputeDevice&) {
  return nullptr;
}
#endif

}  // namespace headscope
