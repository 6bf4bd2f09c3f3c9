#include "plan/batch_size.h"

#include <cmath>

namespace headscope {
namespace {

constexpr double factor = 22.91, exponent = 0.47;

}  // namespace

double critical_batch_tokens(double tokens_of_run) {
  return sequence_tokens * factor * std::pow(tokens_of_run / 1e6, exponent);
}

double least_tokens_of_law() {
  return 1e6 * std::pow(least_by_definition / sequence_tokens / factor, 1 / exponent);
}

}  // namespace headscope
