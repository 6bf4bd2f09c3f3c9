#include "ops/part_timer.h"

#include <deque>

#include "core/console.h"

#ifdef HEADSCOPE_CUDA
#include <c10/cuda/CUDAEvent.h>
#endif

namespace headscope {
namespace {

// A moment in the device's queue.
struct Moment {
  Clock::time_point time = Clock::now();
#ifdef HEADSCOPE_CUDA
  std::unique_ptr<c10::cuda::CUDAEvent> event;
#endif
};

Moment moment_of(const ComputeDevice& device) {
  Moment moment;
#ifdef HEADSCOPE_CUDA
  if (device.device.is_cuda()) {
    moment.event = std::make_unique<c10::cuda::CUDAEvent>(cudaEventDefault);
    moment.event->record();
  }
#endif
  static_cast<void>(device);
  return moment;
}

double milliseconds_between(const Moment& from, const Moment& to) {
#ifdef HEADSCOPE_CUDA
  if (from.event) return from.event->elapsed_time(*to.event);
#endif
  return std::chrono::duration<double, std::milli>(to.time - from.time).count();
}

}  // namespace

struct PartTimer::Marks {
  ComputeDevice device;
  struct Mark {
    const char* part;  // null: a start
    Moment moment;
  };
  std::deque<Mark> all = {};
};

PartTimer::PartTimer(const ComputeDevice& device) : marks_(std::make_unique<Marks>(Marks{device})) {}

PartTimer::~PartTimer() = default;

void PartTimer::start() {
  marks_->all.push_back({nullptr, moment_of(marks_->device)});
}

void PartTimer::done(const char* part) {
  marks_->all.push_back({part, moment_of(marks_->device)});
}

std::map<std::string, double> PartTimer::milliseconds() {
  synchronize(marks_->device);
  std::map<std::string, double> sums;
  for (std::size_t i = 1; i < marks_->all.size(); ++i) {
    const auto& mark = marks_->all[i];
    if (mark.part != nullptr) sums[mark.part] += milliseconds_between(marks_->all[i - 1].moment, mark.moment);
  }
  return sums;
}

}  // namespace headscope
