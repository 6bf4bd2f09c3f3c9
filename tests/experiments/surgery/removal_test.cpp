#include <gtest/gtest.h>

#include "experiments/surgery/operations.h"
#include "small_model.h"
#include "support/exact_model.h"

namespace headscope {
namespace {

using test::loss_with_running_means;
using test::small_batches;
using test::small_model;

const std::vector<std::int64_t> all_layers = {0, 1, 2};

Directions directions_by(const char* by, const Decoder& model, const std::vector<Batch>& batches,
                         RemovalOrder order = RemovalOrder::smallest) {
  if (std::string(by) == "gain") return gain_directions(model, order);
  if (std::string(by) == "singular") return singular_directions(model, batches.front().tokens_bt, order);
  return random_directions(model, 1);
}

// The keys of every layer, as the model uses them under an edit.
std::vector<at::Tensor> keys_of(const Decoder& model, const at::Tensor& tokens_bt, const EditKeys& edit = {}) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> keys;
  const auto keep = [&](std::int64_t, const HeadVectors& vectors) { keys.push_back(vectors.k_bthd.clone()); };
  final_hidden(model, tokens_bt, model.embedding.scalar_type(), {.observe = keep, .edit_keys = edit});
  return keys;
}

class EveryNorm : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Removal, EveryNorm, ::testing::Values(true, false));

TEST_P(EveryNorm, NothingRemovedIsTheUnmodifiedLossBitForBit) {
  const Decoder model = small_model(GetParam());
  const auto batches = small_batches();
  const double unmodified = validation_loss(model, batches, at::kFloat);
  const EditKeys same = [](std::int64_t, const at::Tensor& k_bthd) { return k_bthd; };
  EXPECT_EQ(validation_loss(model, batches, at::kFloat, same), unmodified);
  const Decoder wide =
      test::converted(model, at::kDouble);  // where a projection onto everything would leave its rounding
  const at::Tensor& tokens_bt = batches.front().tokens_bt;
  const Directions directions = singular_directions(wide, tokens_bt, RemovalOrder::smallest);
  const auto before = keys_of(wide, tokens_bt), after = keys_of(wide, tokens_bt, removal(directions, 0, all_layers));
  for (std::size_t layer = 0; layer < 3; ++layer) EXPECT_TRUE(at::equal(before[layer], after[layer])) << layer;
  for (const char* by : {"singular", "random"})
    EXPECT_EQ(validation_loss(model, batches, at::kFloat, removal(directions_by(by, model, batches), 0, all_layers)),
              unmodified);
}

TEST_P(EveryNorm, AllRemovedIsUniformAttention) {
  const Decoder model = small_model(GetParam());
  const auto batches = small_batches();
  const double uniform = loss_with_running_means(model, batches);
  EXPECT_GT(std::fabs(uniform - validation_loss(model, batches, at::kFloat)), 0.01);  // there is something to lose
  for (const char* by : {"singular", "random"})
    // A mean of 144 losses of about 10, in float32: each is off by some of its 2^-24.
    EXPECT_NEAR(validation_loss(model, batches, at::kFloat, removal(directions_by(by, model, batches), 8, all_layers)),
                uniform, 2e-5 * uniform)
        << by;
}

TEST(Removal, ByGainTakesTheSmallestOrLargestGains) {
  const Decoder model = small_model();
  const auto batches = small_batches();
  for (const RemovalOrder order : {RemovalOrder::smallest, RemovalOrder::largest}) {
    const auto before = keys_of(model, batches.front().tokens_bt);
    const auto after = keys_of(model, batches.front().tokens_bt, removal(gain_directions(model, order), 3, all_layers));
    const at::Tensor& gain = model.layers[0].k_gain;
    std::vector<std::pair<float, std::int64_t>> sorted;
    for (std::int64_t i = 0; i < 8; ++i) sorted.emplace_back(std::fabs(gain[i].item<float>()), i);
    std::sort(sorted.begin(), sorted.end());
    if (order == RemovalOrder::largest) std::reverse(sorted.begin(), sorted.end());
    for (std::size_t place = 0; place < 8; ++place) {
      const std::int64_t axis = sorted[place].second;
      const at::Tensor kept = after[0].select(3, axis);
      if (place < 3)
        EXPECT_EQ(kept.abs().max().item<float>(), 0) << axis;
      else
        EXPECT_TRUE(at::equal(kept, before[0].select(3, axis))) << axis;
    }
  }
}

// What is left of keys X after removing directions from the smallest is the best approximation of that rank (Eckart and
// Young): the squared distance is the sum of the squared singular values removed.
TEST(Removal, BySingularValueLosesTheSmallestOnes) {
  const Decoder model = test::converted(small_model(false), at::kDouble);
  const at::Tensor tokens_bt = small_batches().front().tokens_bt;
  for (const RemovalOrder order : {RemovalOrder::smallest, RemovalOrder::largest})
    for (std::int64_t count = 1; count <= 8; ++count) {
      const Directions directions = singular_directions(model, tokens_bt, order);
      const at::Tensor before = keys_of(model, tokens_bt)[0];
      const at::Tensor after = keys_of(model, tokens_bt, removal(directions, count, all_layers))[0];
      for (std::int64_t head = 0; head < 2; ++head) {
        const auto rows = [&](const at::Tensor& k) { return k.select(2, head).flatten(0, 1).detach(); };
        const at::Tensor values = at::linalg_svdvals(rows(before));  // descending
        const at::Tensor lost =
            order == RemovalOrder::smallest ? values.slice(0, 8 - count) : values.slice(0, 0, count);
        const double expected = lost.pow(2).sum().item<double>();
        EXPECT_NEAR((rows(after) - rows(before)).pow(2).sum().item<double>(), expected,
                    1e-10 * values[0].item<double>());
      }
    }
}

TEST_P(EveryNorm, DirectionsThatKeysDoNotUseCostNothing) {
  const at::NoGradGuard no_gradients;
  Decoder model = small_model(GetParam());
  const DecoderConfig& c = model.config;
  at::manual_seed(8);
  for (DecoderLayer& layer : model.layers)  // the keys of each head in a space of 3 dimensions
    for (std::int64_t head = 0; head < c.kv_heads; ++head)
      layer.qkv.weight.narrow(0, (c.heads + head) * c.d_k, c.d_k)
          .copy_(at::matmul(at::randn({c.d_k, 3}), at::randn({3, c.d_model})) * 0.2);
  const auto batches = small_batches();
  const Directions directions = singular_directions(model, batches.front().tokens_bt, RemovalOrder::smallest);
  const double unmodified = validation_loss(model, batches, at::kFloat);
  // Rounding in float32 of scores of about 10, and of the directions.
  EXPECT_NEAR(validation_loss(model, batches, at::kFloat, removal(directions, 5, all_layers)), unmodified, 1e-4);
  EXPECT_GT(std::fabs(validation_loss(model, batches, at::kFloat, removal(directions, 6, all_layers)) - unmodified),
            1e-3);
}

TEST(Removal, LeavesOtherLayersAlone) {
  const Decoder model = small_model();
  const at::Tensor tokens_bt = small_batches().front().tokens_bt;
  for (const char* by : {"gain", "singular", "random"}) {
    const auto before = keys_of(model, tokens_bt);
    const auto after = keys_of(model, tokens_bt, removal(directions_by(by, model, small_batches()), 4, {1}));
    EXPECT_TRUE(at::equal(before[0], after[0])) << by;
    EXPECT_FALSE(at::equal(before[1], after[1])) << by;
  }
}

TEST(RandomDirections, AreWholeOrdersAndDifferBetweenHeadsLayersAndSeeds) {
  const Decoder model = small_model();
  const Directions one = random_directions(model, 1), again = random_directions(model, 1),
                   other = random_directions(model, 2);
  for (std::size_t layer = 0; layer < 3; ++layer) {
    EXPECT_TRUE(at::equal(one[layer].axes_hd, again[layer].axes_hd));
    EXPECT_FALSE(at::equal(one[layer].axes_hd, other[layer].axes_hd));
    EXPECT_TRUE(at::equal(std::get<0>(one[layer].axes_hd.sort(1)), at::arange(8).expand({2, 8})));
  }
  EXPECT_FALSE(at::equal(one[0].axes_hd[0], one[0].axes_hd[1]));
  EXPECT_FALSE(at::equal(one[0].axes_hd, one[1].axes_hd));
}

TEST(RemovedDimensions, AreTheNearestNumber) {
  EXPECT_EQ(removed_dimensions(0, 32), 0);
  EXPECT_EQ(removed_dimensions(0.1, 32), 3);
  EXPECT_EQ(removed_dimensions(0.99, 32), 32);
  EXPECT_EQ(removed_dimensions(1, 32), 32);
}

}  // namespace
}  // namespace headscope
