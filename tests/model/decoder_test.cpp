#include "model/decoder.h"

#include <ATen/CPUGeneratorImpl.h>

#include "probe/key_statistics.h"
#include "probe/probe.h"
#include "stats/sample_moments.h"
#include "support/exact_model.h"
#include "support/expect_error.h"
#include "support/gradients.h"
#include "support/tensor_oracle.h"

namespace headscope {
namespace {

using test::converted;
using test::expect_error;
using test::largest_difference;
using test::TensorOracle;

// The reference model with its weights, in float32.
Decoder reference_model(const TensorOracle& oracle, bool qk_norm) {
  DecoderConfig config;
  config.vocabulary = oracle.size("vocab");
  config.d_model = oracle.size("d_model");
  config.layers = oracle.size("layers");
  config.heads = oracle.size("heads");
  config.kv_heads = oracle.size("kv_heads");
  config.d_k = oracle.size("d_k");
  config.d_ff = oracle.size("d_ff");
  config.rope.base = oracle.number("rope_base");
  config.norm.eps = oracle.number("epsilon");
  config.qk_norm = qk_norm;
  Decoder model = make_decoder(config, 1);
  const at::NoGradGuard no_gradients;
  for_each_parameter(model,
                     [&](const std::string& name, ParameterKind, at::Tensor& value) { value.copy_(oracle.get(name)); });
  return model;
}

class Reference : public ::testing::TestWithParam<std::pair<const char*, bool>> {
 protected:
  Reference() : oracle(GetParam().first), model(reference_model(oracle, GetParam().second)) {}
  TensorOracle oracle;
  Decoder model;
};

at::Tensor logits(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type) {
  return next_token_logits(model, final_hidden(model, tokens_bt, type));
}

TEST_P(Reference, LogitsAndLossAgreeWithNumpy) {
  const at::Tensor tokens = oracle.get("tokens"), targets = oracle.get("targets");
  EXPECT_LT(largest_difference(logits(model, tokens, at::kFloat), oracle.get("expected.logits")), 1e-5);
  const double loss = oracle.get("expected.loss").item<double>();
  EXPECT_NEAR(next_token_loss(model, tokens, targets, at::kFloat).item<double>(), loss, 1e-5);
  // In float64 only the order of sums differs: 1e-12 of values near 1.
  const Decoder exact = converted(model, at::kDouble);
  Decoder weights = exact;
  {
    const at::NoGradGuard no_gradients;
    for_each_parameter(
        weights, [&](const std::string& name, ParameterKind, at::Tensor& value) { value.copy_(oracle.get(name)); });
  }
  EXPECT_LT(largest_difference(logits(weights, tokens, at::kDouble), oracle.get("expected.logits")), 1e-12);
}

TEST_P(Reference, KeysAndTheirRankAgreeWithNumpy) {
  std::int64_t seen = 0;
  final_hidden(model, oracle.get("tokens"), at::kFloat,
               {.observe = [&](std::int64_t layer, const HeadVectors& vectors) {
                 EXPECT_EQ(layer, seen++);
                 const std::string prefix = fmt::format("expected.layers.{}.", layer);
                 EXPECT_LT(largest_difference(vectors.k_bthd, oracle.get(prefix + "keys")), 1e-5);
                 const at::Tensor expected = oracle.get(prefix + "key_pr");
                 const auto ratios = spectrum_of_gram(key_gram(vectors.k_bthd)).at("k_pr");
                 for (std::int64_t head = 0; head < expected.size(0); ++head)
                   EXPECT_NEAR(ratios[static_cast<std::size_t>(head)], expected[head].item<double>(), 1e-5);
               }});
  EXPECT_EQ(seen, model.config.layers);
}

TEST_P(Reference, GradientsOfTheWholeModelAgreeWithCentralDifferences) {
  const Decoder exact = converted(model, at::kDouble);
  std::vector<at::Tensor> parameters;
  for_each_parameter(exact,
                     [&](const std::string&, ParameterKind, const at::Tensor& value) { parameters.push_back(value); });
  test::expect_gradients(
      parameters, [&] { return next_token_loss(exact, oracle.get("tokens"), oracle.get("targets"), at::kDouble); });
}

INSTANTIATE_TEST_SUITE_P(Decoder, Reference,
                         ::testing::Values(std::pair("model_qk.safetensors", true),
                                           std::pair("model_noqk.safetensors", false)));

DecoderConfig shape_of_88m() {
  DecoderConfig config;
  config.vocabulary = 49152;
  config.d_model = 512;
  config.layers = 2;
  config.heads = 8;
  config.kv_heads = 4;
  config.d_k = 64;
  config.d_ff = 2048;
  return config;
}

DecoderConfig shape_of_1_5b() {
  DecoderConfig config = shape_of_88m();
  config.d_model = 2048;
  config.heads = 16;
  config.kv_heads = 8;
  config.d_k = 128;
  config.d_ff = 8192;
  config.vocabulary = 8192;  // of the words that occur, a few thousand
  return config;
}

// Words as frequent as in natural text: rank r with probability proportional to 1/r.
at::Tensor zipf_tokens(std::int64_t words, std::int64_t batch, std::int64_t time) {
  at::Generator generator = at::detail::createCPUGenerator(5);
  const at::Tensor weights = 1 / at::arange(1, words + 1, at::kDouble);
  return at::multinomial(weights, batch * time, /*replacement=*/true, generator).view({batch, time});
}

ProbeResult initial_probe(const DecoderConfig& config) {
  const Decoder model = make_decoder(config, 42);
  const at::Tensor tokens = zipf_tokens(config.vocabulary, 4, 1024);
  return probe_model(model, {{tokens, tokens}}, at::kFloat, MetricSelection("k_pr", "test"), /*with_loss=*/false);
}

double mean_pr(const ProbeResult& result) {
  double sum = 0;
  std::size_t count = 0;
  for (const HeadValues& layer : result.layers)
    for (const double value : layer.at("k_pr")) sum += value, ++count;
  return sum / static_cast<double>(count);
}

// The source study starts at 86.85 of 128 dimensions (0.68) on natural text; 64 dimensions at about 48.8 (0.76).
TEST(Initial, KeyRankIsPlausible) {
  EXPECT_NEAR(mean_pr(initial_probe(shape_of_88m())) / 64, 0.76, 0.12);
  EXPECT_NEAR(mean_pr(initial_probe(shape_of_1_5b())) / 128, 0.68, 0.12);
}

TEST(Initial, NormedKeysHaveLengthRootD) {
  const DecoderConfig config = shape_of_88m();
  const Decoder model = make_decoder(config, 1);
  const at::NoGradGuard no_gradients;
  final_hidden(model, zipf_tokens(config.vocabulary, 1, 64), at::kFloat,
               {.observe = [](std::int64_t, const HeadVectors& vectors) {
                 EXPECT_LT((vectors.k_bthd.norm(2, -1) - 8.0).abs().max().item<double>(), 1e-4);
                 EXPECT_LT((vectors.q_bthd.norm(2, -1) - 8.0).abs().max().item<double>(), 1e-4);
               }});
}

TEST(Initial, WeightsAreTheSameInAllConditions) {
  DecoderConfig config;
  std::vector<Decoder> models;
  for (const bool kind : {true, false}) {
    config.qk_norm = kind;
    models.push_back(make_decoder(config, 7));
  }
  for (std::size_t i = 1; i < models.size(); ++i) {
    EXPECT_TRUE(at::equal(models[i].embedding, models[0].embedding));
    for (std::size_t layer = 0; layer < models[0].layers.size(); ++layer) {
      EXPECT_TRUE(at::equal(models[i].layers[layer].qkv.weight, models[0].layers[layer].qkv.weight));
      EXPECT_TRUE(at::equal(models[i].layers[layer].output.weight, models[0].layers[layer].output.weight));
      EXPECT_TRUE(at::equal(models[i].layers[layer].down.weight, models[0].layers[layer].down.weight));
    }
  }
  EXPECT_FALSE(at::equal(make_decoder(config, 8).embedding, models[0].embedding));
  EXPECT_TRUE(models[0].layers[0].k_gain.requires_grad());
  EXPECT_FALSE(models[1].layers[0].k_gain.defined());
}

TEST(Initial, MatricesHaveTheirStandardDeviation) {
  const Decoder model = make_decoder(DecoderConfig(), 3);
  // 65,536 values: the standard error of the deviation is 0.02/sqrt(2n) = 5.5e-5.
  EXPECT_NEAR(model.layers[0].up.weight.std().item<double>(), 0.02, 4 * 5.5e-5);
  EXPECT_TRUE(at::equal(model.final_norm.gain, at::ones({128})));
}

// The configurations of two controls of the study, small, with gains that are not 1.
Decoder control_model(const std::function<void(DecoderConfig&)>& change) {
  DecoderConfig config;
  config.vocabulary = 19;
  config.d_model = 12;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.d_k = 6;
  config.d_ff = 16;
  config.init_std = 0.2;
  change(config);
  const at::NoGradGuard no_gradients;
  Decoder model = converted(make_decoder(config, 4), at::kDouble);
  std::uint64_t seed = 50;
  for_each_parameter(model, [&](const std::string&, ParameterKind kind, at::Tensor& value) {
    if (kind == ParameterKind::qk_gain) value.add_(test::random_tensor(value.sizes(), ++seed), 0.3);
    value.set_requires_grad(true);
  });
  return model;
}

void expect_gradients_of_loss(const Decoder& model) {
  const at::Tensor tokens = zipf_tokens(model.config.vocabulary, 2, 9), targets = tokens.flip(1);
  std::vector<at::Tensor> parameters;
  for_each_parameter(model,
                     [&](const std::string&, ParameterKind, const at::Tensor& value) { parameters.push_back(value); });
  test::expect_gradients(parameters, [&] { return next_token_loss(model, tokens, targets, at::kDouble); });
}

TEST(OneGain, HasTheGradientsOfCentralDifferences) {
  const Decoder model = control_model([](DecoderConfig& config) { config.qk_gain = QkGainShape::scalar; });
  EXPECT_EQ(model.layers[0].k_gain.sizes(), at::IntArrayRef({1}));
  expect_gradients_of_loss(model);
}

TEST(OneGain, IsAVectorOfEqualGains) {
  const Decoder one = control_model([](DecoderConfig& config) { config.qk_gain = QkGainShape::scalar; });
  Decoder many = control_model([](DecoderConfig&) {});
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> values;
  for_each_parameter(one, [&](const std::string&, ParameterKind, const at::Tensor& value) { values.push_back(value); });
  std::size_t i = 0;
  for_each_parameter(many, [&](const std::string&, ParameterKind, const at::Tensor& value) {
    value.copy_(values[i++].expand_as(value));
  });
  const at::Tensor tokens = zipf_tokens(19, 2, 9);
  EXPECT_LT(largest_difference(logits(one, tokens, at::kDouble), logits(many, tokens, at::kDouble)), 1e-14);
  EXPECT_EQ(gains_of(one).k, gains_of(many).k);  // what is measured has d_k values
}

TEST(QkScale, HasTheGradientsOfCentralDifferences) {
  expect_gradients_of_loss(control_model([](DecoderConfig& config) {
    config.qk_norm = false;
    config.qk_scale = {};
  }));
}

TEST(QkScale, IsAFactorOnTheScores) {
  // Queries that are 3 times as large give the same scores.
  const Decoder scaled = control_model([](DecoderConfig& config) {
    config.qk_norm = false;
    config.qk_scale = {3};
  });
  const Decoder plain = control_model([](DecoderConfig& config) { config.qk_norm = false; });
  const at::Tensor tokens = zipf_tokens(19, 2, 9);
  const at::NoGradGuard no_gradients;
  EXPECT_GT(largest_difference(logits(plain, tokens, at::kDouble), logits(scaled, tokens, at::kDouble)), 1e-3);
  for (const DecoderLayer& layer : plain.layers) at::Tensor(layer.qkv.weight).narrow(0, 0, 12).mul_(3);
  EXPECT_LT(largest_difference(logits(plain, tokens, at::kDouble), logits(scaled, tokens, at::kDouble)), 1e-13);
}

// Standard deviation of the scores of a layer over causal pairs, for the weights of the start.
std::vector<double> score_spread(DecoderConfig config) {
  const Decoder model = make_decoder(config, 11);
  const at::NoGradGuard no_gradients;
  std::vector<double> spread;
  final_hidden(model, zipf_tokens(config.vocabulary, 4, 64), at::kFloat,
               {.observe = [&](std::int64_t, const HeadVectors& v) {
                 const at::Tensor k = v.k_rotated_bthd.repeat_interleave(config.heads / config.kv_heads, 2);
                 const at::Tensor scores = at::einsum("bthd,bshd->bhts", {v.q_rotated_bthd, k}) * v.scores.scale;
                 const at::Tensor causal = at::ones({64, 64}, at::kBool).tril().expand_as(scores);
                 spread.push_back(scores.masked_select(causal).std().item<double>());
               }});
  return spread;
}

TEST(QkScale, ThatIsMatchedSpreadsTheFirstScoresAsQkNormDoes) {
  for (const std::int64_t d_model : {128, 512}) {
    DecoderConfig config;
    config.d_model = d_model;
    config.vocabulary = 2000;
    config.heads = 8;
    config.kv_heads = 4;
    config.d_k = 64;
    const std::vector<double> with_norm = score_spread(config);
    config.qk_norm = false;
    const std::vector<double> plain = score_spread(config);
    config.qk_scale = {};
    const std::vector<double> matched = score_spread(config);
    for (std::size_t layer = 0; layer < with_norm.size(); ++layer) {
      EXPECT_NEAR(matched[layer] / with_norm[layer], 1, 0.05) << d_model << ", layer " << layer;
      EXPECT_GT(std::abs(plain[layer] / with_norm[layer] - 1), 0.5);  // it is the factor that does it
    }
  }
}

TEST(Config, CountsParametersAsTheModelHasThem) {
  for (const auto& [kind, shape] : {std::pair(true, QkGainShape::vector),
                                    {true, QkGainShape::scalar},
                                    {false, QkGainShape::vector},
                                    {false, QkGainShape::scalar}}) {
    DecoderConfig config;
    config.qk_norm = kind;
    config.qk_gain = shape;
    std::int64_t total = 0;
    const Decoder model = make_decoder(config, 1);
    for_each_parameter(model,
                       [&](const std::string&, ParameterKind, const at::Tensor& value) { total += value.numel(); });
    EXPECT_EQ(count_parameters(config).total, total);
  }
}

TEST(Config, RefusesWhatMakesNoModel) {
  const auto refused = [](const char* message, auto change) {
    DecoderConfig config;
    change(config);
    expect_error(Fault::input, message, [&] { validate(config); });
  };
  refused("model.heads is 4, model.kv_heads 3; expected heads divisible by kv_heads", [](auto& c) { c.kv_heads = 3; });
  refused("model.d_k is 31; expected an even number", [](auto& c) { c.d_k = 31; });
  refused("model.layers is 0; expected 1 to 4096", [](auto& c) { c.layers = 0; });
  refused("model.rope_base is inf; expected more than 1",
          [](auto& c) { c.rope.base = std::numeric_limits<double>::infinity(); });
  refused("model.heads 65536 x model.d_k 65536 is too much", [](auto& c) { c.heads = c.kv_heads = c.d_k = 1 << 16; });
}

// The largest model that is not refused, counted in numbers of 64 bits of mantissa that do not wrap around.
TEST(Config, CountsOfTheLargestModelAreExact) {
  DecoderConfig config;
  config.vocabulary = config.d_ff = 1 << 24;
  config.d_model = 1 << 20;
  config.layers = 4096;
  config.heads = config.kv_heads = 1 << 16;
  config.d_k = 256;
  ASSERT_NO_THROW(validate(config));
  const long double width = 1 << 20, wide = 1 << 24;  // heads x d_k, d_ff and the vocabulary are the same
  const long double matrices = 4096 * (width * 4 * wide + 2 * width * wide);
  const long double total = matrices + wide * width + 4096 * (2 * width + 2 * 256) + width;
  const ParameterCounts counts = count_parameters(config);
  EXPECT_EQ(static_cast<long double>(counts.matrices), matrices);
  EXPECT_EQ(static_cast<long double>(counts.total), total);
}

TEST(Probe, TheVariationOfGains) {
  EXPECT_EQ(coefficient_of_variation({2, 2, 2}), 0);
  // 1, 2, 3: mean 2, standard deviation 1 (n - 1).
  EXPECT_NEAR(coefficient_of_variation({-1, -2, -3}), 0.5, 1e-15);
}

}  // namespace
}  // namespace headscope
