// Queries, keys and values from the packed product, against what autograd says of the same composed of other
// operations.
#include "ops/head_rotation.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/attention.h"
#include "ops/rms_norm.h"
#include "support/gradients.h"

namespace headscope {
namespace {

using test::random_tensor;

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(HeadRotation, IsNormRotationAndCopies) {
  constexpr std::int64_t b = 2, t = 7, heads = 6, kv_heads = 2, d = 8;
  const at::Tensor table = rotary_table(t, d, 10000, at::kDouble);
  for (const bool repeated : {false, true}) {
    const at::Tensor qkv = random_tensor({b, t, heads + 2 * kv_heads, d}, 1).set_requires_grad(true);
    const at::Tensor q_gain = random_tensor({d}, 2).set_requires_grad(true),
                     k_gain = random_tensor({d}, 3).set_requires_grad(true);
    const auto parts = qkv.split_with_sizes({heads, kv_heads, kv_heads}, 2);
    // Query head i looks at key head i / 3.
    const auto for_heads = [&](const at::Tensor& x) {
      return repeated ? x.index_select(2, at::arange(heads).floor_divide(heads / kv_heads).to(at::kLong)) : x;
    };
    const std::vector<at::Tensor> expected = {rotate(rms_norm(parts[0], q_gain, 1e-3), table),
                                              for_heads(rotate(rms_norm(parts[1], k_gain, 1e-3), table)),
                                              for_heads(parts[2])};
    std::vector<at::Tensor> upstream;
    for (std::size_t i = 0; i < 3; ++i) upstream.push_back(random_tensor(expected[i].sizes(), 10 + i));
    const auto wanted = torch::autograd::grad(expected, {qkv, q_gain, k_gain}, upstream);

    const at::NoGradGuard no_gradients;
    const HeadRotation rotation{heads, kv_heads, q_gain.detach(), k_gain.detach(), 1e-3, table, repeated};
    const RotatedHeads actual = rotate_heads(qkv.detach(), rotation, /*with_plain=*/false);
    EXPECT_LT(difference(actual.q_bthd, expected[0]), 1e-12);
    EXPECT_LT(difference(actual.k_bthd, expected[1]), 1e-12);
    EXPECT_LT(difference(actual.v_bthd, expected[2]), 1e-12);
    const auto got = rotate_heads_backward(qkv.detach(), rotation, upstream[0], upstream[1], upstream[2]);
    EXPECT_LT(difference(got.d_qkv_bthd, wanted[0]), 1e-12);
    EXPECT_LT(difference(got.q_gain_parts.sum(0), wanted[1]), 1e-12);
    EXPECT_LT(difference(got.k_gain_parts.sum(0), wanted[2]), 1e-12);
  }
}

}  // namespace
}  // namespace headscope
