#include "optim/clip.h"

#include <cmath>

namespace headscope {

double clip_gradients(const std::vector<at::Tensor>& parameters, double limit) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) gradients.push_back(parameter.grad());
  const double norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients))).item<double>();
  if (std::isfinite(norm) && norm > limit) at::_foreach_mul_(gradients, limit / norm);
  return norm;
}

}  // namespace headscope
