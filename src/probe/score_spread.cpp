#include "probe/score_spread.h"

namespace headscope {

// The scores q·k of one query vary over keys by qᵀCq, with the covariance C of the keys; the mean of that over queries
// is the sum of (QᵀQ / t) ∘ C. So nothing is as large as the scores.
at::Tensor score_std(const HeadVectors& vectors) {
  const at::NoGradGuard no_gradients;
  const auto by_head = [](const at::Tensor& x_bthd) { return x_bthd.detach().transpose(1, 2).to(at::kDouble); };
  const at::Tensor q_bhtd = by_head(vectors.q_rotated_bthd), k_bhtd = by_head(vectors.k_rotated_bthd);
  const at::Tensor centred_bhtd = k_bhtd - k_bhtd.mean(2, /*keepdim=*/true);
  const auto tokens = static_cast<double>(k_bhtd.size(2));
  const std::int64_t queries_of_a_key = q_bhtd.size(1) / k_bhtd.size(1);
  const at::Tensor covariance_bhdd =
      at::matmul(centred_bhtd.mT(), centred_bhtd).repeat_interleave(queries_of_a_key, 1) / tokens;
  const at::Tensor squares_bhdd = at::matmul(q_bhtd.mT(), q_bhtd) / tokens;
  return vectors.scores.scale * (squares_bhdd * covariance_bhdd).sum({2, 3}).mean(0).sqrt();
}

}  // namespace headscope
