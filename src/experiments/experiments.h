// The half with torch, as the program calls it. It is a library of its own, because torch takes a third of a second to
// start: a command that refuses its input, draws or analyses does not wait for it. Errors of torch come out as ours.
#pragma once

#include "experiments/benchmark.h"
#include "experiments/capture.h"
#include "experiments/device_benchmark.h"
#include "experiments/estimate.h"
#include "experiments/inspect.h"
#include "experiments/parity.h"
#include "experiments/study_run.h"
#include "experiments/surgery/run.h"
#include "experiments/train_run.h"

namespace headscope {

struct Experiments {
  decltype(&run_training) train;
  decltype(&run_study) study;
  decltype(&gpus_for_workers) gpus;
  Inspection (*inspect)(const InspectJob& job, Console& console, const WriteMore& write_more);
  decltype(&run_surgery) surgery;
  decltype(&compare_with_reference) parity;
  decltype(&run_capture) capture;
  decltype(&plan_capture) describe_capture;
  decltype(&capture_into) capture_data;
  decltype(&estimate_run) estimate;
  decltype(&benchmark_training) time_training;
  decltype(&benchmark_tracking) time_tracking;
  decltype(&benchmark_device) time_device;
};

}  // namespace headscope

extern "C" const headscope::Experiments headscope_experiments;
