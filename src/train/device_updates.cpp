#include "train/device_updates.h"

#ifdef HEADSCOPE_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>

#include <array>
#include <deque>
#include <optional>
#endif

#include "core/interrupt.h"
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

// Work that is queued operation by operation, or recorded as CUDA graphs when it comes for the first time and replayed
// from then on. It may be cut into pieces, between which something is queued that is not recorded.
class Recording {
 public:
  using Cut = std::function<void(std::int64_t)>;

  // work(cut): cut(what) ends a piece, and between(what) follows.
  void run(bool recorded, const Pool& pool, const CUDAStream& stream, const std::function<void(const Cut&)>& work,
           const Cut& between = {}) {
    if (!recorded) {
      const Pool::Use from_pool(pool, stream);
      work(between);
    } else if (pieces_.empty()) {
      record(pool, work, between);
    } else {
      for (const Piece& piece : pieces_) {
        piece.graph->replay();
        if (piece.cut_at) between(*piece.cut_at);
      }
    }
  }

 private:
  struct Piece {
    std::unique_ptr<at::cuda::CUDAGraph> graph = std::make_unique<at::cuda::CUDAGraph>();
    std::optional<std::int64_t> cut_at = {};
  };

  void record(const Pool& pool, const std::function<void(const Cut&)>& work, const Cut& between) {
    std::vector<Piece> pieces;
    bool records = false;
    const auto begin = [&] {
      pieces.emplace_back().graph->capture_begin(pool.id(), cudaStreamCaptureModeThreadLocal);
      records = true;
    };
    const auto end = [&] {
      records = false;
      pieces.back().graph->capture_end();
      pieces.back().graph->replay();
    };
    begin();
    try {
      work([&](std::int64_t what) {
        end();
        pieces.back().cut_at = what;
        between(what);
        begin();
      });
    } catch (...) {  // out of memory: the stream must not stay in a recording
      try {
        if (records) pieces.back().graph->capture_end();
      } catch (const c10::Error&) {  // what was recorded is not used
      }
      throw;
    }
    end();
    pieces_ = std::move(pieces);
  }

  std::vector<Piece> pieces_;
};

class GraphedUpdates : public DeviceUpdates {
 public:
  GraphedUpdates(const Decoder& model, Optimizers& optimizers, const TrainOptions& options, const ComputeDevice& device,
                 const Ranks& ranks)
      : optimizers_(optimizers),
        options_(options),
        ranks_(ranks),
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
    losses_ = at::zeros({options.accumulation}, at::TensorOptions(device_).dtype(at::kFloat));
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
      Report& next = reports_.emplace_back();
      for (std::int64_t i = ranks_.rank(); i < options_.accumulation; i += ranks_.size()) {
        const Batch host = batch(i);
        batch_.tokens_bt.copy_(host.tokens_bt, /*non_blocking=*/true);
        batch_.targets_bt.copy_(host.targets_bt, /*non_blocking=*/true);
        const ForwardStep step = forward_step(i);
        if (ranks_.connected()) next.start.record(stream_);
        next.measured = i == 0 && measurer != nullptr;
        if (next.measured)
          measured_pass(step, *measurer);
        else
          pass(passes_[step.first][step.last], step, {});
        if (ranks_.connected()) next.end.record(stream_);
        if (ranks_.connected()) exchange_gradients(i, step);
      }
      if (ranks_.connected())
        optimize_together();
      else
        queue(optimizer_, [&] { optimizers_.step(update_, options_.clip); });
      if (timer_ != nullptr) timer_->done("optimizers");
      ++launched_;
      report(next);
    }
    follow(stream_, outside);
  }

  Outcome wait() override {
    Report& oldest = reports_.front();
    if (ranks_.connected())
      ranks_.wait_until([&] { return oldest.event.query(); });
    else
      oldest.event.synchronize();
    const auto* values = oldest.values.const_data_ptr<float>();
    Outcome outcome{values[0], values[1]};
    if (ranks_.connected()) read_numbers(oldest, outcome);
    reports_.pop_front();
    return outcome;
  }

  void parameters_changed() override { optimizers_.keep_copies(pass_.copies()); }

  void time_parts(PartTimer* timer) override {
    timer_ = timer;
    pass_.time_parts(timer);
  }

 private:
  struct Report {
    at::Tensor values;                                         // loss and norm
    at::Tensor numbers;                                        // what ranks exchanged, if there are several
    CUDAEvent event;                                           // when the host has them
    CUDAEvent start{cudaEventDefault}, end{cudaEventDefault};  // of the last forward step of connected ranks
    bool measured = false;                                     // it was
  };

  // The first update is queued operation by operation: the libraries choose their kernels in it. So is one that is
  // timed. Afterwards, everything is recorded when it comes for the first time.
  [[nodiscard]] bool records() const { return launched_ > 0 && timer_ == nullptr; }

  // Of an update, on this rank.
  struct ForwardStep {
    bool first, last;  // as far as its gradients are concerned
  };

  // In order, each forward step overwrites the gradients, and Shares adds them afterwards. Without ranks
  // the last one is as the others are.
  [[nodiscard]] ForwardStep forward_step(std::int64_t i) const {
    const bool in_order = ranks_.connected() && ranks_.ordered();
    return {i == ranks_.rank() || in_order, ranks_.connected() && i + ranks_.size() >= options_.accumulation};
  }

  // A pass. Gradients that ranks exchange begin to travel while it goes on, as far as that can be queued.
  void pass(Recording& recording, const ForwardStep& step, const Observe& observe) {
    Shares& shares = optimizers_.shares();
    const TrainingPass::Part part{1.0 / static_cast<double>(options_.accumulation), step.first};
    const bool exchanges = ranks_.queued() && (step.last || ranks_.ordered());
    const auto work = [&](const Recording::Cut& cut) {
      pass_.run(batch_.tokens_bt, batch_.targets_bt, part, update_.loss, observe, [&](std::int64_t layer) {
        if (exchanges && shares.ends_piece(layer)) cut(layer);
      });
    };
    recording.run(records(), pool_, stream_, work,
                  [&](std::int64_t layer) { shares.layer_done(ranks_, step.last, layer); });
  }

  void queue(Recording& recording, const std::function<void()>& work) {
    recording.run(records(), pool_, stream_, [&](const Recording::Cut&) { work(); });
  }

  // The measurer of the recording keeps the memory that replays write to. Other graphs use it, too: what was measured
  // is sent before anything else is queued.
  void measured_pass(const ForwardStep& step, HeadMeasurer& measurer) {
    if (records()) {
      if (!recorded_) recorded_ = std::make_unique<HeadMeasurer>(measurer.chosen());
      HEADSCOPE_CHECK(recorded_->chosen() == measurer.chosen(), "one graph measures one selection");
      pass(measured_pass_, step, recorded_->hooks().observe);
      measurer.observe_as(*recorded_);
    } else {
      pass(measured_pass_, step, measurer.hooks().observe);
    }
    measurer.send();
  }

  // After forward step i, whose loss is kept apart from the others.
  void exchange_gradients(std::int64_t i, const ForwardStep& step) {
    losses_[i].copy_(update_.loss);
    update_.loss.zero_();
    optimizers_.shares().add_gradients(ranks_, step.last);
    if (timer_ != nullptr) timer_->done("gradients between ranks");
  }

  // Every rank updates what it owns. Between the graphs ranks exchange the losses with the norm of the gradients, and
  // the weights.
  void optimize_together() {
    queue(sum_, [&] { squares_ = optimizers_.sum_squares(); });
    exchange_numbers();
    queue(optimizer_, [&] {
      optimizers_.step_own(update_, options_.clip);
      optimizers_.shares().pack_weights();
    });
    if (timer_ != nullptr) timer_->done("optimizers");
    optimizers_.shares().exchange_weights(ranks_);
    queue(weights_, [&] { optimizers_.unpack_weights(); });
    if (timer_ != nullptr) timer_->done("weights between ranks");
  }

  // Of each rank: the losses of its forward steps, the squares of its gradients, whether it is to stop, and how long it
  // took the last time. What is not its own is 0. All ranks get the same sums, and so the same update.
  void exchange_numbers() {
    const std::int64_t losses = losses_.numel(), squares = squares_.numel();
    const at::Tensor flags = at::zeros({1 + ranks_.size()}, at::TensorOptions(at::kDouble).pinned_memory(true));
    auto* values = flags.mutable_data_ptr<double>();
    values[0] = interrupt_requested() ? 1 : 0;
    values[1 + ranks_.rank()] = seconds_;
    numbers_ =
        ranks_.all_reduce(at::cat({losses_.to(at::kDouble), squares_, flags.to(device_, /*non_blocking=*/true)}));
    squares_.copy_(numbers_.narrow(0, losses, squares));
    for (std::int64_t i = 0; i < losses; ++i) update_.loss.add_(numbers_[i].to(at::kFloat));  // in their order
    losses_.zero_();
  }

  void read_numbers(Report& report, Outcome& outcome) {
    seconds_ = report.measured ? 0 : report.start.elapsed_time(report.end) / 1000;
    const auto* numbers = report.numbers.const_data_ptr<double>();
    outcome.losses.assign(numbers, numbers + losses_.numel());
    numbers += losses_.numel() + squares_.numel();
    outcome.stop = numbers[0] > 0;
    outcome.seconds.assign(numbers + 1, numbers + 1 + ranks_.size());
  }

  // They go to the host behind the update.
  void report(Report& next) {
    const auto send = [](const at::Tensor& values) {
      const at::Tensor host = at::empty(values.sizes(), at::TensorOptions(values.scalar_type()).pinned_memory(true));
      return host.copy_(values, /*non_blocking=*/true);
    };
    next.values = send(at::stack({update_.loss, update_.grad_norm}));
    if (ranks_.connected()) next.numbers = send(numbers_);
    next.event.record(stream_);
  }

  static void follow(const CUDAStream& first, const CUDAStream& second) {
    CUDAEvent event;
    event.record(first);
    event.block(second);
  }

  Optimizers& optimizers_;
  const TrainOptions& options_;
  const Ranks& ranks_;
  at::Device device_;
  CUDAStream stream_;
  Pool pool_;
  TrainingPass pass_;
  DeviceUpdate update_;
  Batch batch_;
  std::unique_ptr<HeadMeasurer> recorded_;
  std::array<std::array<Recording, 2>, 2> passes_;  // [first][last]
  Recording measured_pass_, optimizer_;
  // Of several ranks: the losses of this one's forward steps, the squares of its gradients, and what all gave together.
  at::Tensor losses_, squares_, numbers_;
  Recording sum_, weights_;
  double seconds_ = 0;  // of this rank's last forward step that the host knows of; 0: it was measured
  std::int64_t launched_ = 0;
  std::deque<Report> reports_;
  PartTimer* timer_ = nullptr;
};

}  // namespace

std::unique_ptr<DeviceUpdates> make_device_updates(const Decoder& model, Optimizers& optimizers,
                                                   const TrainOptions& options, const ComputeDevice& device,
                                                   const Ranks& ranks) {
  return has_device_updates(model.config, options, device.device)
             ? std::make_unique<GraphedUpdates>(model, optimizers, options, device, ranks)
             : nullptr;
}
#else
std::unique_ptr<DeviceUpdates> make_device_updates(const Decoder&, Optimizers&, const TrainOptions&,
                                                   const ComputeDevice&, const Ranks&) {
  return nullptr;
}
#endif

}  // namespace headscope
