// The pass that is written out against next_token_loss and autograd, gradient by gradient.
#include "model/training_pass.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "support/gradients.h"

namespace headscope {
namespace {

struct Case {
  DecoderConfig config;
  bool fixed_gains = false, recompute = false;
  at::ScalarType type = at::kDouble;
  double tolerance = 1e-12;
};

DecoderConfig small_config() {
  DecoderConfig config;
  config.vocabulary = 61;
  config.d_model = 24;
  config.layers = 3;
  config.heads = 6;
  config.kv_heads = 2;
  config.d_k = 8;
  config.d_ff = 40;
  return config;
}

// Random gains, so that their gradients and those through them differ from those of ones.
Decoder make_model(const Case& test) {
  Decoder model = make_decoder(test.config, 7);
  const at::NoGradGuard no_gradients;
  std::uint64_t seed = 100;
  for_each_parameter(model, [&](const std::string&, ParameterKind kind, at::Tensor& value) {
    value = value.detach().to(test.type);
    const bool is_gain = kind == ParameterKind::gain || kind == ParameterKind::qk_gain;
    if (is_gain) value.add_(test::random_tensor(value.sizes(), ++seed).to(test.type), 0.3);
    if (kind == ParameterKind::matrix) value.mul_(5);  // attention that is not uniform
    value.set_requires_grad(!(test.fixed_gains && kind == ParameterKind::qk_gain));
  });
  return model;
}

at::Tensor tokens_of(std::int64_t seed, const DecoderConfig& config) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed));
  return at::randint(config.vocabulary, {2, 11}, generator, at::TensorOptions(at::kLong));
}

double difference(const at::Tensor& actual, const at::Tensor& exact) {
  return ((actual - exact).norm() / exact.norm()).item<double>();
}

void expect_gradients_of_autograd(const Case& test) {
  const Decoder model = make_model(test);
  const at::Tensor tokens = tokens_of(1, test.config), targets = tokens_of(2, test.config);
  const double share = 0.25;
  std::vector<at::Tensor> parameters;
  std::vector<std::string> names;
  for_each_parameter(model, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    if (!value.requires_grad()) return;
    parameters.push_back(value);
    names.push_back(name);
  });
  const at::Tensor expected_loss = next_token_loss(model, tokens, targets, test.type) * share;
  const auto expected = torch::autograd::grad({expected_loss}, parameters);
  for (at::Tensor& parameter : parameters) parameter.mutable_grad() = at::full_like(parameter, NAN).detach();

  TrainingPass pass(model, {.type = test.type, .recompute = test.recompute});
  at::Tensor loss = at::zeros({}, at::TensorOptions(test.type));
  std::vector<std::int64_t> seen;
  const Observe observe = [&](std::int64_t layer, const HeadVectors&) { seen.push_back(layer); };
  pass.run(tokens, targets, {share, /*first=*/true}, loss, observe);
  pass.run(tokens, targets, {share, /*first=*/false}, loss);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_LT(difference(loss, expected_loss.detach() * 2), test.tolerance);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    EXPECT_LT(difference(parameters[i].grad(), expected[i] * 2), test.tolerance) << names[i];
}

TEST(TrainingPass, HasTheGradientsOfAutograd) {
  ASSERT_TRUE(TrainingPass::supports(small_config()));
  expect_gradients_of_autograd({.config = small_config()});
}

// Ranks exchange them while the pass goes on.
TEST(TrainingPass, GradientsOfALayersMatricesAreWholeWhenItIsDone) {
  for (const bool recompute : {false, true}) {
    const Decoder model = make_model({.config = small_config()});
    for_each_parameter(model, [&](const std::string&, ParameterKind, const at::Tensor& value) {
      value.mutable_grad() = at::full_like(value, NAN).detach();
    });
    TrainingPass pass(model, {.type = at::kDouble, .recompute = recompute});
    at::Tensor loss = at::zeros({}, at::kDouble);
    std::vector<std::pair<at::Tensor, at::Tensor>> matrices;  // the parameter, and its gradient then
    std::vector<std::int64_t> layers;
    const at::Tensor tokens = tokens_of(1, small_config());
    pass.run(tokens, tokens_of(2, small_config()), {}, loss, {}, [&](std::int64_t layer) {
      layers.push_back(layer);
      for (const LayerMatrix& matrix : layer_matrices(model, static_cast<std::size_t>(layer)))
        for (const at::Tensor& part : matrix.parts) matrices.emplace_back(part, part.grad().clone());
    });
    EXPECT_EQ(layers, (std::vector<std::int64_t>{2, 1, 0}));
    EXPECT_EQ(matrices.size(), 3U * 4);
    for (const auto& [matrix, then] : matrices) {
      EXPECT_TRUE(at::equal(then, matrix.grad()));
      EXPECT_FALSE(then.isnan().any().item<bool>());
    }
  }
}

TEST(TrainingPass, WithoutQkNorm) {
  Case test{.config = small_config()};
  test.config.qk_norm = false;
  expect_gradients_of_autograd(test);
}

TEST(TrainingPass, WithFixedGains) {
  expect_gradients_of_autograd({.config = small_config(), .fixed_gains = true});
}

TEST(TrainingPass, WithOneGainForAllDimensions) {
  for (const bool recompute : {false, true}) {
    Case test{.config = small_config(), .recompute = recompute};
    test.config.qk_gain = QkGainShape::scalar;
    ASSERT_TRUE(TrainingPass::supports(test.config));
    expect_gradients_of_autograd(test);
  }
}

TEST(TrainingPass, WithAFactorOnScores) {
  Case test{.config = small_config()};
  test.config.qk_norm = false;
  test.config.qk_scale = {};  // matched
  test.config.init_std = 0.05;
  ASSERT_TRUE(TrainingPass::supports(test.config));
  expect_gradients_of_autograd(test);
}

TEST(TrainingPass, WithOneGroup) {
  Case test{.config = small_config()};
  test.config.kv_heads = 6;
  expect_gradients_of_autograd(test);
}

TEST(TrainingPass, ComputesLayersASecondTime) {
  expect_gradients_of_autograd({.config = small_config(), .recompute = true});
}

TEST(TrainingPass, InFloat32) {
  expect_gradients_of_autograd({.config = small_config(), .type = at::kFloat, .tolerance = 2e-5});
}

TEST(TrainingPass, ShowsWhatHeadsWorkWith) {
  const Case test{.config = small_config()};
  const Decoder model = make_model(test);
  const at::Tensor tokens = tokens_of(1, test.config);
  std::vector<HeadVectors> expected, actual;
  final_hidden(model, tokens, at::kDouble,
               {.observe = [&](std::int64_t, const HeadVectors& v) { expected.push_back(v); }});
  for_each_parameter(model, [](const std::string&, ParameterKind, const at::Tensor& value) {
    value.mutable_grad() = at::zeros_like(value).detach();
  });
  at::Tensor loss = at::zeros({}, at::kDouble);
  TrainingPass(model, {.type = at::kDouble}).run(tokens, tokens, {}, loss, [&](std::int64_t, const HeadVectors& v) {
    actual.push_back(v);
  });
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t layer = 0; layer < actual.size(); ++layer) {
    const HeadVectors &a = actual[layer], &e = expected[layer];
    EXPECT_LT(difference(a.q_bthd, e.q_bthd.detach()), 1e-12);
    EXPECT_LT(difference(a.k_bthd, e.k_bthd.detach()), 1e-12);
    EXPECT_LT(difference(a.v_bthd, e.v_bthd.detach()), 1e-12);
    EXPECT_LT(difference(a.q_rotated_bthd, e.q_rotated_bthd.detach()), 1e-12);
    EXPECT_LT(difference(a.k_rotated_bthd, e.k_rotated_bthd.detach()), 1e-12);
    EXPECT_EQ(a.scores.scale, e.scores.scale);
  }
}

TEST(TrainingPass, LeavesOtherDecodersToAutograd) {
  DecoderConfig config = small_config();
  config.activation = Activation::gelu;
  EXPECT_FALSE(TrainingPass::supports(config));
  config = small_config();
  config.rope.pairing = RopePairing::halves;
  EXPECT_FALSE(TrainingPass::supports(config));
  config = small_config();
  config.windows = {4, 0, 0};
  EXPECT_FALSE(TrainingPass::supports(config));
}

}  // namespace
}  // namespace headscope
