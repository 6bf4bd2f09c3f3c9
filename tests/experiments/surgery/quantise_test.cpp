#include <gtest/gtest.h>

#include "experiments/surgery/operations.h"
#include "small_model.h"
#include "support/exact_model.h"

namespace headscope {
namespace {

using test::small_batches;
using test::small_model;

double squared_error(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).to(at::kDouble).pow(2).sum().item<double>();
}

// [1, 3, 1, 2], by hand: 3 bits are the levels -3…3.
TEST(Quantised, IsTheNearestLevel) {
  const at::Tensor keys = at::tensor({6.0F, -1.5F, -0.9F, 0.4F, 2.9F, 0.3F}).reshape({1, 3, 1, 2});
  const at::Tensor by_tensor = at::tensor({6.0F, -2.0F, 0.0F, 0.0F, 2.0F, 0.0F}).reshape({1, 3, 1, 2});  // steps of 2
  EXPECT_TRUE(at::equal(quantised(keys, 3, ScaleOf::tensor), by_tensor));
  // Steps of 2 and of 0.5.
  const at::Tensor by_channel = at::tensor({6.0F, -1.5F, 0.0F, 0.5F, 2.0F, 0.5F}).reshape({1, 3, 1, 2});
  EXPECT_TRUE(at::equal(quantised(keys, 3, ScaleOf::channel), by_channel));
}

// Written out with doubles and std::nearbyint, which rounds half to even.
TEST(Quantised, AgreesWithALoop) {
  at::manual_seed(1);
  const at::Tensor keys = at::randn({2, 5, 3, 4}, at::kDouble);
  for (const std::int64_t bits : {2, 3, 4, 6, 8, 16})
    for (const ScaleOf scale_of : {ScaleOf::tensor, ScaleOf::channel}) {
      const at::Tensor result = quantised(keys, bits, scale_of);
      for (std::int64_t head = 0; head < 3; ++head)
        for (std::int64_t i = 0; i < 4; ++i) {
          const auto channel = [&](const at::Tensor& x) {
            return x.select(2, head).select(2, i).flatten().contiguous();
          };
          const at::Tensor own = scale_of == ScaleOf::tensor ? keys.flatten() : channel(keys);
          double largest = 0;
          for (std::int64_t n = 0; n < own.size(0); ++n) largest = std::max(largest, std::fabs(own[n].item<double>()));
          const double step = largest / (std::pow(2, bits - 1) - 1);
          for (std::int64_t n = 0; n < 10; ++n)
            EXPECT_DOUBLE_EQ(channel(result)[n].item<double>(),
                             std::nearbyint(channel(keys)[n].item<double>() / step) * step);
        }
    }
}

TEST(Quantised, ZeroKeysStayZero) {
  const at::Tensor keys = at::zeros({1, 2, 1, 2});
  EXPECT_TRUE(at::equal(quantised(keys, 4, ScaleOf::tensor), keys));
  keys.select(3, 0).fill_(3);
  EXPECT_TRUE(at::equal(quantised(keys, 4, ScaleOf::channel), keys));  // a channel of zeros beside one of threes
}

TEST(Quantised, KeepsTheType) {
  const at::Tensor keys = at::randn({1, 4, 2, 8}).to(at::kBFloat16);
  EXPECT_EQ(quantised(keys, 4, ScaleOf::channel).scalar_type(), at::kBFloat16);
}

TEST(Quantised, AnOutlierChannelCostsTheOthersTheirBitsOnlyUnderOneScale) {
  at::manual_seed(2);
  const at::Tensor keys = at::randn({2, 16, 2, 8});
  keys.select(3, 5).mul_(30);
  for (const std::int64_t bits : {3, 4, 6, 8})
    EXPECT_LT(squared_error(quantised(keys, bits, ScaleOf::channel), keys),
              squared_error(quantised(keys, bits, ScaleOf::tensor), keys))
        << bits;
}

TEST(Quantisation, LossTendsToTheUnmodifiedOneWithManyBits) {
  const Decoder model = test::converted(small_model(), at::kDouble);
  const auto batches = small_batches();
  const double unmodified = validation_loss(model, batches, at::kDouble);
  for (const ScaleOf scale_of : {ScaleOf::tensor, ScaleOf::channel}) {
    const auto change = [&](std::int64_t bits) {
      return std::fabs(validation_loss(model, batches, at::kDouble, quantisation(bits, scale_of, {0, 1, 2})) -
                       unmodified);
    };
    EXPECT_GT(change(3), 1e-3);
    EXPECT_LT(change(8), change(3));
    EXPECT_LT(change(16), 1e-4);
    EXPECT_LT(change(30), 1e-8);  // a key is off by 2^-30 of the largest
  }
}

TEST(Quantisation, LeavesOtherLayersAlone) {
  const at::Tensor keys = at::randn({1, 4, 2, 8});
  const EditKeys edit = quantisation(3, ScaleOf::tensor, {1});
  EXPECT_TRUE(at::equal(edit(0, keys), keys));
  EXPECT_FALSE(at::equal(edit(1, keys), keys));
}

}  // namespace
}  // namespace headscope
