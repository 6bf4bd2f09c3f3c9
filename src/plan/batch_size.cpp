#include "plan/batch_size.h"

#include <cmath>

namespace headscope {

double critical_batch_tokens(double tokens_of_run) {
  return 512 * 22.91 * std::pow(tokens_of_run / 1e6, 0.47);
}

}  // namespace headscope
