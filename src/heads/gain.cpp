#include "heads/gain.h"

#include <cmath>

#include "stats/sample_moments.h"

namespace headscope {

double coefficient_of_variation(const std::vector<double>& values) {
  const SampleMoments sample = sample_moments(values);
  return std::sqrt(sample.variance()) / std::abs(sample.mean);
}

}  // namespace headscope
