#include "support/gradients.h"

#include <ATen/CPUGeneratorImpl.h>

#include "ops/attention.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"
#include "ops/squared_relu.h"

namespace headscope {
namespace {

using test::expect_gradients;
using test::random_tensor;

at::Tensor leaf(at::IntArrayRef shape, std::uint64_t seed) {
  return random_tensor(shape, seed).set_requires_grad(true);
}

// A scalar that weighs every output differently.
at::Tensor weighed(const at::Tensor& y) {
  return (y * random_tensor(y.sizes(), 77)).sum();
}

TEST(Gradients, OfRmsNorm) {
  const at::Tensor x = leaf({3, 5, 8}, 1), gain = leaf({8}, 2);
  expect_gradients({x, gain}, [&] { return weighed(rms_norm(x, gain, 1e-3)); });
  expect_gradients({x}, [&] { return weighed(rms_norm(x, {}, 1e-3)); });
}

TEST(Gradients, OfRmsNormWithAGainForEachHead) {
  const at::Tensor x = leaf({2, 3, 4, 6}, 1), gain = leaf({4, 6}, 2);
  expect_gradients({x, gain}, [&] { return weighed(rms_norm(x, gain, 1e-7)); });
}

TEST(Gradients, OfRmsNormOnAViewThatIsNotContiguous) {
  const at::Tensor x = leaf({2, 3, 5, 6}, 1);
  expect_gradients({x}, [&] { return weighed(rms_norm(x.narrow(2, 1, 3), {}, 1e-7)); });
}

TEST(Gradients, OfRotary) {
  const at::Tensor x = leaf({2, 7, 3, 8}, 1);
  const at::Tensor table = rotary_table(9, 8, 10000, at::kDouble);
  expect_gradients({x}, [&] { return weighed(rotate(x, table)); });
}

TEST(Gradients, OfGroupedCausalAttention) {
  const at::Tensor q = leaf({2, 6, 4, 8}, 1), k = leaf({2, 6, 2, 8}, 2), v = leaf({2, 6, 2, 8}, 3);
  expect_gradients({q, k, v}, [&] { return weighed(causal_attention(q, k, v, {.scale = 0.3})); });
}

TEST(Gradients, OfAttentionWithAWindowAndASoftCap) {
  const at::Tensor q = leaf({2, 6, 4, 8}, 1), k = leaf({2, 6, 2, 8}, 2), v = leaf({2, 6, 2, 8}, 3);
  for (const Scores& scores : {Scores{0.3, 3, 0}, Scores{0.3, 3, 0.8}})
    expect_gradients({q, k, v}, [&] { return weighed(causal_attention(q, k, v, scores)); });
}

TEST(Gradients, OfRotaryOnHalvesOfAPart) {
  const at::Tensor x = leaf({2, 7, 3, 8}, 1);
  const at::Tensor table = rotary_table(9, 6, 10000, at::kDouble);
  expect_gradients({x}, [&] { return weighed(rotate(x, table, /*halves=*/true)); });
}

TEST(Gradients, OfSquaredRelu) {
  const at::Tensor x = leaf({4, 9}, 1);
  expect_gradients({x}, [&] { return weighed(squared_relu(x)); });
}

TEST(Gradients, OfLinearCrossEntropyInOneSliceAndInSeveral) {
  const at::Tensor x = leaf({11, 6}, 1), weight = leaf({13, 6}, 2);
  const at::Tensor targets = at::arange(11) % 13;
  const std::int64_t row_bytes = 13 * 4;
  for (const std::int64_t bytes : {std::int64_t{1} << 20, 4 * row_bytes, std::int64_t{1}})
    for (const double cap : {0.0, 1.5})
      expect_gradients({x, weight}, [&] { return linear_cross_entropy(x, weight, targets, bytes, cap) * 3; });
}

}  // namespace
}  // namespace headscope
