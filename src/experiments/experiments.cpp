#include "experiments/experiments.h"

#include "ops/torch_errors.h"

namespace headscope {
namespace {

// The function, with torch's errors as ours.
template <auto function>
struct Shortened;
template <class Result, class... Arguments, Result (*function)(Arguments...)>
struct Shortened<function> {
  static Result call(Arguments... arguments) {
    return with_short_torch_errors([&] { return function(std::forward<Arguments>(arguments)...); });
  }
};

}  // namespace
}  // namespace headscope

const headscope::Experiments headscope_experiments = {
    .train = headscope::Shortened<headscope::run_training>::call,
    .study = headscope::Shortened<headscope::run_study>::call,
    .gpus = headscope::Shortened<headscope::gpus_for_workers>::call,
    .inspect = headscope::Shortened<headscope::inspect>::call,
    .surgery = headscope::Shortened<headscope::run_surgery>::call,
    .parity = headscope::Shortened<headscope::compare_with_reference>::call,
    .capture = headscope::Shortened<headscope::run_capture>::call,
    .describe_capture = headscope::Shortened<headscope::plan_capture>::call,
    .capture_data = headscope::Shortened<headscope::capture_into>::call,
    .estimate = headscope::Shortened<headscope::estimate_run>::call,
    .time_training = headscope::Shortened<headscope::benchmark_training>::call,
    .time_tracking = headscope::Shortened<headscope::benchmark_tracking>::call,
    .time_device = headscope::Shortened<headscope::benchmark_device>::call,
};
