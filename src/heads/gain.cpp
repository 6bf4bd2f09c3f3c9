#include "heads/gain.h"

#include <cmath>

#include "stats/moments.h"

namespace headscope {

double coefficient_of_variation(const std::vector<double>& values) {
  const Moments sample = moments(values);
  return std::sqrt(sample.variance()) / std::abs(sample.mean);
}

}  // namespace headscope
