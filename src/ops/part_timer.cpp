#include "ops/part_timer.h"

#include <deque>

#include "core/console.h"

#ifdef HEADSCOPE_CUDA
#include <c10/cuda/CUDAEvent.h>
#endif

namespace headscope {

struct PartTimer::Marks {
  // A moment in the device's queue.
  struct Moment {
    Clock::time_point time = Clock::now();
#ifdef HEADSCOPE_CUDA
    std::unique_ptr<c10::cuda::CUDAEvent> event;
#endif
  };
  struct Mark {
    const char* part;  // null: a start
    Moment moment;
  };
  ComputeDevice device;
  std::deque<Mark> all = {};

  [[nodiscard]] Moment now() const {
    Moment moment;
#ifdef HEADSCOPE_CUDA
    if (device.device.is_cuda()) {
      moment.event = std::make_unique<c10::cuda::CUDAEvent>(cudaEventDefault);
      moment.event->record();
    }
#endif
    return moment;
  }

  static double milliseconds_between(const Moment& from, const Moment& to) {
#ifdef HEADSCOPE_CUDA
    if (from.event) return from.event->elapsed_time(*to.event);
#endif
    return std::chrono::duration<double, std::milli>(to.time - from.time).count();
  }
};

PartTimer::PartTimer(const ComputeDevice& device) : marks_(std::make_unique<Marks>(Marks{device})) {}

PartTimer::~PartTimer() = default;

void PartTimer::start() {
  marks_->all.push_back({nullptr, marks_->now()});
}

void PartTimer::done(const char* part) {
  marks_->all.push_back({part, marks_->now()});
}

std::map<std::string, double> PartTimer::milliseconds() {
  synchronize(marks_->device);
  std::map<std::string, double> sums;
  for (std::size_t i = 1; i < marks_->all.size(); ++i) {
    const auto& mark = marks_->all[i];
    if (mark.part != nullptr) sums[mark.part] += Marks::milliseconds_between(marks_->all[i - 1].moment, mark.moment);
  }
  return sums;
}

}  // namespace headscope
