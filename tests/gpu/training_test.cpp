// The passes of training that are written out, their kernels, and updates as graphs, against float64 on the CPU.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <gmock/gmock.h>

#include "gpu/support.h"
#include "model/training_pass.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"
#include "ops/squared_relu.h"
#include "support/gradients.h"
#include "support/rank_threads.h"
#include "support/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace headscope {
namespace {

using test::gpu, test::random_tensor, test::relative_error;

// A rounding to bfloat16 errs by up to 2^-9 of a value, 2^-9/√3 in the mean square: 1.1e-3. Results that are rounded
// once or twice stay below 4e-3; float32 keeps 2^-24, and sums of thousands of terms a few times that.
double tolerance_of(at::ScalarType type) {
  return type == at::kBFloat16 ? 4e-3 : 3e-6;
}

// The same values, rounded to the type, on both sides.
struct Both {
  at::Tensor there, exact;
  Both(const at::Tensor& x, at::ScalarType type)
      : there(x.to(gpu().device, type)), exact(there.to(at::kCPU, at::kDouble)) {}
};

// One element after a 16-byte boundary.
at::Tensor misaligned(const at::Tensor& x) {
  at::Tensor room = at::empty({x.numel() + 1}, x.options());
  return room.narrow(0, 1, x.numel()).view(x.sizes()).copy_(x);
}

constexpr std::array both_types = {at::kFloat, at::kBFloat16};

TEST(GpuTraining, NormOfASum) {
  for (const at::ScalarType type : both_types)
    for (const std::int64_t d :
         {32, 48, 64, 80, 96, 100, 128, 250, 256, 512, 576, 768, 514, 772, 1024, 1302, 1536, 2048, 3000, 4096}) {
      SCOPED_TRACE(testing::Message() << "d " << d << ", " << type);
      const Both x(random_tensor({1003, d}, 1), type), delta(random_tensor({1003, d}, 2), type);
      const Both dy(random_tensor({1003, d}, 3), type), d_sum(random_tensor({1003, d}, 4), type);
      const Both gain(random_tensor({d}, 5), at::kFloat);
      const NormedSum actual = rms_norm_forward(x.there, delta.there, gain.there, 1e-7);
      const Both sum(actual.sum.cpu(), type);  // its rounding is not the norm's error
      EXPECT_LT(relative_error(actual.sum, x.exact + delta.exact), tolerance_of(type));
      const NormedSum exact = rms_norm_forward(sum.exact, {}, gain.exact, 1e-7);
      EXPECT_LT(relative_error(actual.y, exact.y), tolerance_of(type));
      const NormGradients expected = rms_norm_backward(sum.exact, gain.exact, exact.inverse, dy.exact, d_sum.exact);
      const NormGradients got =
          rms_norm_backward(actual.sum, gain.there, actual.inverse, dy.there, d_sum.there.clone());
      EXPECT_LT(relative_error(got.dx, expected.dx), tolerance_of(type));
      EXPECT_LT(relative_error(got.gain_parts.sum(0), expected.gain_parts.sum(0)), 1e-5);
    }
}

TEST(GpuTraining, NormOfUnalignedRows) {
  const Both x(random_tensor({37, 512}, 1), at::kBFloat16), dy(random_tensor({37, 512}, 2), at::kBFloat16);
  const Both gain(random_tensor({512}, 5), at::kFloat);
  const NormedSum exact = rms_norm_forward(x.exact, {}, gain.exact, 1e-7);
  for (const auto& [values, gains] : {std::pair(misaligned(x.there), gain.there), {x.there, misaligned(gain.there)}}) {
    const NormedSum actual = rms_norm_forward(values, {}, gains, 1e-7);
    EXPECT_LT(relative_error(actual.y, exact.y), tolerance_of(at::kBFloat16));
    const NormGradients got = rms_norm_backward(values, gains, actual.inverse, misaligned(dy.there), {});
    const NormGradients expected = rms_norm_backward(x.exact, gain.exact, exact.inverse, dy.exact, {});
    EXPECT_LT(relative_error(got.dx, expected.dx), tolerance_of(at::kBFloat16));
  }
}

TEST(GpuTraining, HeadRotation) {
  constexpr std::int64_t b = 3, t = 67, heads = 6, kv_heads = 2;
  for (const at::ScalarType type : both_types)
    for (const std::int64_t d : {8, 24, 32, 64, 80, 96, 128, 256, 6})  // the last has no kernel
      for (const auto& [normed, repeated] : {std::pair(true, false), {false, false}, {true, true}, {false, true}}) {
        SCOPED_TRACE(testing::Message() << "d " << d << ", " << type << (normed ? ", normed" : "")
                                        << (repeated ? ", repeated" : ""));
        const std::int64_t key_heads = repeated ? heads : kv_heads;
        const Both qkv(random_tensor({b, t, heads + 2 * kv_heads, d}, 1), type);
        const Both dq(random_tensor({b, t, heads, d}, 2), type), dk(random_tensor({b, t, key_heads, d}, 3), type),
            dv(random_tensor({b, t, key_heads, d}, 4), type);
        const Both q_gain(random_tensor({d}, 5), at::kFloat), k_gain(random_tensor({d}, 6), at::kFloat);
        const HeadRotation exact{heads,
                                 kv_heads,
                                 normed ? q_gain.exact : at::Tensor(),
                                 normed ? k_gain.exact : at::Tensor(),
                                 1e-7,
                                 rotary_table(t + 5, d, 10000, at::kDouble),
                                 repeated};
        HeadRotation there = exact;
        there.table = rotary_table(t + 5, d, 10000).to(gpu().device);
        if (normed) {
          there.q_gain = q_gain.there;
          there.k_gain = k_gain.there;
        }
        const RotatedHeads actual = rotate_heads(qkv.there, there, true),
                           expected = rotate_heads(qkv.exact, exact, true);
        EXPECT_LT(relative_error(actual.q_bthd, expected.q_bthd), tolerance_of(type));
        EXPECT_LT(relative_error(actual.k_bthd, expected.k_bthd), tolerance_of(type));
        EXPECT_LT(relative_error(actual.v_bthd, expected.v_bthd), tolerance_of(type));
        EXPECT_LT(relative_error(actual.plain_bthd, expected.plain_bthd), tolerance_of(type));
        const auto got = rotate_heads_backward(qkv.there, there, dq.there, dk.there, dv.there);
        const auto wanted = rotate_heads_backward(qkv.exact, exact, dq.exact, dk.exact, dv.exact);
        EXPECT_LT(relative_error(got.d_qkv_bthd, wanted.d_qkv_bthd), tolerance_of(type));
        if (!normed) continue;
        // A composed backward pass rounds in between; the kernel does not.
        EXPECT_LT(relative_error(got.q_gain_parts.sum(0), wanted.q_gain_parts.sum(0)), d == 6 ? 1e-2 : 1e-5);
        EXPECT_LT(relative_error(got.k_gain_parts.sum(0), wanted.k_gain_parts.sum(0)), d == 6 ? 1e-2 : 1e-5);
      }
}

TEST(GpuTraining, SquaredReluInPlace) {
  for (const at::ScalarType type : both_types)
    for (const std::int64_t count : {1, 7, 8, 1000, 4096 * 33 + 5})
      for (const bool aligned : {true, false}) {
        const Both x(random_tensor({count}, 1).abs() - 0.2, type), dy(random_tensor({count}, 2), type);
        at::Tensor y = aligned ? x.there.clone() : misaligned(x.there);
        at::Tensor dx = aligned ? dy.there.clone() : misaligned(dy.there);
        squared_relu_forward_(y);
        EXPECT_LT(relative_error(y, x.exact.relu().square()), tolerance_of(type));
        squared_relu_backward_(y, dx);
        EXPECT_LT(relative_error(dx, 2 * x.exact.relu() * dy.exact), tolerance_of(type));
      }
}

TEST(GpuTraining, LossAndGradients) {
  constexpr std::int64_t tokens = 777, width = 64;
  for (const at::ScalarType type : both_types)
    for (const std::int64_t vocabulary : {1000, 1001, 8200}) {
      const Both x(random_tensor({tokens, width}, 1), type), weight(random_tensor({vocabulary, width}, 2) * 0.3, type);
      const at::Tensor targets = (at::arange(tokens) * 7919) % vocabulary;
      at::Tensor loss = at::zeros({}, at::TensorOptions(gpu().device)), exact_loss = at::zeros({}, at::kDouble);
      at::Tensor dw = at::full({vocabulary, width}, NAN, at::TensorOptions(gpu().device));
      at::Tensor exact_dw = at::zeros({vocabulary, width}, at::kDouble);
      for (int i = 0; i < 2; ++i) {  // the second adds
        const at::Tensor dx = loss_and_gradients(x.there, weight.there, targets.to(gpu().device), 0.5, loss, dw, i > 0,
                                                 300 * vocabulary * x.there.element_size());
        const at::Tensor exact_dx = loss_and_gradients(x.exact, weight.exact, targets, 0.5, exact_loss, exact_dw);
        // The logits are rounded before their exponentials are taken: 2^-9 of values up to 8.
        EXPECT_LT(relative_error(dx, exact_dx), type == at::kFloat ? 1e-5 : 1.5e-2);
      }
      EXPECT_LT(relative_error(loss, exact_loss), type == at::kFloat ? 1e-6 : 1e-3);
      EXPECT_LT(relative_error(dw, exact_dw), type == at::kFloat ? 1e-5 : 1.5e-2);
    }
}

TEST(GpuTraining, EmbeddingGradientHasAFixedOrder) {
  for (const at::ScalarType type : both_types)
    for (const std::int64_t tokens : {1, 31, 32, 33, 5000}) {
      const std::int64_t vocabulary = 40, d = 132;
      const Both dx(random_tensor({tokens, d}, 1), type);
      // One token in two of three places: a run of a hundred windows; some never; some once.
      const at::Tensor index = at::arange(tokens);
      const at::Tensor ids = at::where(index % 3 == 0, index * 7 % 35, at::full({1}, 11, at::kLong));
      at::Tensor exact = random_tensor({vocabulary, d}, 2).to(at::kFloat).to(at::kDouble);
      at::Tensor first = exact.to(gpu().device, at::kFloat), second = first.clone();
      add_embedding_gradient(first, ids.to(gpu().device), dx.there, 3.5);
      add_embedding_gradient(second, ids.to(gpu().device), dx.there, 3.5);
      exact.index_add_(0, ids, dx.exact, 3.5);
      EXPECT_LT(relative_error(first, exact), 1e-6) << tokens;
      EXPECT_TRUE(at::equal(first, second));
    }
}

TEST(GpuTraining, AttentionPasses) {
  const std::int64_t b = 2, t = 300, d = 64;
  for (const std::int64_t kv_heads : {2, 6})
    for (const bool deterministic : {false, true}) {
      const Both q(random_tensor({b, t, 6, d}, 1), at::kBFloat16),
          k(random_tensor({b, t, kv_heads, d}, 2), at::kBFloat16);
      // Values are a slice of the packed product.
      const Both packed(random_tensor({b, t, kv_heads + 3, d}, 3), at::kBFloat16);
      const at::Tensor v = packed.there.narrow(2, 3, kv_heads), exact_v = packed.exact.narrow(2, 3, kv_heads);
      const Both d_mixed(random_tensor({b, t, 6, d}, 4), at::kBFloat16);
      const Attended actual = attention_forward(q.there, k.there, v, 0.125, deterministic);
      EXPECT_EQ(actual.kernels, deterministic ? AttentionKernels::flash : AttentionKernels::cudnn);
      const Attended exact = attention_forward(q.exact, k.exact, exact_v, 0.125, deterministic);
      EXPECT_LT(relative_error(actual.mixed_bthd, exact.mixed_bthd), 1e-2);
      EXPECT_LT(relative_error(actual.log_sum_bht, exact.log_sum_bht), 1e-5);
      const auto got = attention_backward(q.there, k.there, v, actual, d_mixed.there, 0.125);
      const auto wanted = attention_backward(q.exact, k.exact, exact_v, exact, d_mixed.exact, 0.125);
      EXPECT_LT(relative_error(got.dq_bthd, wanted.dq_bthd), 2e-2);
      EXPECT_LT(relative_error(got.dk_bthd, wanted.dk_bthd), 2e-2);
      EXPECT_LT(relative_error(got.dv_bthd, wanted.dv_bthd), 2e-2);
    }
}

TEST(GpuTraining, WeightGradientsAreSummedInFloat32) {
  const Both dy(random_tensor({1000, 72}, 1), at::kBFloat16), x(random_tensor({1000, 40}, 2), at::kBFloat16);
  const at::Tensor before = random_tensor({72, 40}, 3, at::kFloat);
  at::Tensor dw = before.to(gpu().device);
  add_weight_gradient(dw, dy.there, x.there, 0.5);
  EXPECT_LT(relative_error(dw, before.to(at::kDouble) + 0.5 * at::mm(dy.exact.t(), x.exact)), 1e-6);
  dw.fill_(NAN);
  add_weight_gradient(dw, dy.there, x.there, 0.5, /*adds=*/false);
  EXPECT_LT(relative_error(dw, 0.5 * at::mm(dy.exact.t(), x.exact)), 1e-6);
}

DecoderConfig small_config() {
  DecoderConfig config;
  config.vocabulary = 512;
  config.d_model = 128;
  config.layers = 3;
  config.heads = 4;
  config.kv_heads = 2;
  config.d_k = 64;
  config.d_ff = 320;
  return config;
}

// Gradients of the pass in bfloat16 on the GPU against float64 on the CPU.
TEST(GpuTraining, PassHasTheGradientsOfTheCpu) {
  DecoderConfig scalar = small_config(), without = small_config(), scaled = small_config();
  scalar.qk_gain = QkGainShape::scalar;
  without.qk_norm = scaled.qk_norm = false;
  scaled.qk_scale = {};  // matched
  for (const DecoderConfig& config : {small_config(), scalar, without, scaled}) {
    SCOPED_TRACE(testing::Message() << "QK-Norm " << config.qk_norm << ", factor " << config.qk_factor() << ", gains "
                                    << static_cast<int>(config.qk_gain));
    ASSERT_TRUE(TrainingPass::supports(config));
    const Decoder there = make_decoder(config, 3, gpu().device);
    Decoder exact = make_decoder(config, 3);
    for_each_parameter(exact, [](const std::string&, ParameterKind, at::Tensor& value) {
      value = value.detach().to(at::kBFloat16).to(at::kDouble).set_requires_grad(true);
    });
    const auto with_gradients = [](const Decoder& model) {
      for_each_parameter(model, [](const std::string&, ParameterKind, const at::Tensor& value) {
        value.mutable_grad() = at::zeros_like(value).detach();
      });
    };
    with_gradients(there);
    with_gradients(exact);
    at::Generator generator = at::detail::createCPUGenerator(5);
    const at::Tensor tokens = at::randint(config.vocabulary, {4, 129}, generator, at::TensorOptions(at::kLong));
    const at::Tensor inputs = tokens.narrow(1, 0, 128), targets = tokens.narrow(1, 1, 128);
    at::Tensor loss = at::zeros({}, at::TensorOptions(gpu().device)), exact_loss = at::zeros({}, at::kDouble);
    TrainingPass(there, {.type = at::kBFloat16}).run(inputs.to(gpu().device), targets.to(gpu().device), {0.5}, loss);
    TrainingPass(exact, {.type = at::kDouble}).run(inputs, targets, {0.5}, exact_loss);
    EXPECT_LT(relative_error(loss, exact_loss), 1e-3);
    NamedTensors wanted;
    for_each_parameter(exact, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
      wanted.emplace_back(name, value.grad());
    });
    std::size_t i = 0;
    for_each_parameter(there, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
      EXPECT_LT(relative_error(value.grad(), wanted[i].second), 3e-2) << name;
      ++i;
    });
  }
}

Corpus random_corpus(const TrainOptions& options, std::int64_t vocabulary, std::int64_t steps) {
  at::Generator generator = at::detail::createCPUGenerator(11);
  const auto tokens = [&](std::int64_t count) {
    const at::Tensor values = at::randint(vocabulary / 4, {count}, generator, at::TensorOptions(at::kLong));
    std::vector<std::uint32_t> ids;
    for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::uint32_t>(values[i].item<std::int64_t>()));
    const auto buffer = std::make_shared<TokenBuffer>(vocabulary);
    buffer->append(ids);
    const TokenRange all{0, count};
    return Tokens{buffer, buffer->span(), {&all, 1}};
  };
  Corpus corpus;
  corpus.train = tokens(steps * options.tokens_per_step() + 1);
  corpus.validation = tokens(options.batch * options.seq_len * 4 + 1);
  return corpus;
}

struct Trained {
  std::vector<double> losses, norms;
  at::Tensor embedding;
};

// How updates are queued: as graphs, as graphs with measurements, or operation by operation.
enum class Queued { graphs, measured, one_by_one };

// The same model, each weight one rounding of float32 away.
Decoder nudged(Decoder model) {
  at::Generator generator = at::detail::createCPUGenerator(13);
  for_each_parameter(model, [&](const std::string&, ParameterKind, const at::Tensor& value) {
    const at::Tensor up = at::randint(2, value.sizes(), generator, at::TensorOptions(at::kFloat)).to(value.device());
    value.detach().mul_(1 + (2 * up - 1) * std::numeric_limits<float>::epsilon());
  });
  return model;
}

Trained trained(const TrainOptions& options, Queued queued = Queued::graphs, const Ranks& ranks = Ranks::one(),
                const DecoderConfig& config = small_config(), bool is_nudged = false) {
  const Corpus corpus = random_corpus(options, config.vocabulary, options.steps());
  Decoder model = make_decoder(config, 1, gpu().device);
  if (is_nudged) model = nudged(std::move(model));
  Trainer trainer(std::move(model), options, 1, corpus, gpu(), ranks);
  Trained result;
  const auto add = [&](const std::optional<StepRecord>& update) {
    if (!update) return;
    result.losses.push_back(update->loss);
    result.norms.push_back(update->grad_norm);
    EXPECT_EQ(update->after.step, static_cast<std::int64_t>(result.losses.size()));
    const std::size_t layers = update->measurer ? update->measurer->finish().layers.size() : 0;
    EXPECT_EQ(layers, queued == Queued::measured ? static_cast<std::size_t>(config.layers) : 0);
  };
  const MetricSelection all("all", "test");
  PartTimer timer(gpu());
  trainer.time_parts(queued == Queued::one_by_one ? &timer : nullptr);
  for (std::int64_t i = 0; i < options.steps(); ++i) add(trainer.step(queued == Queued::measured ? &all : nullptr));
  add(trainer.wait());
  result.embedding = trainer.model().embedding.detach().cpu().clone();
  return result;
}

TrainOptions small_training() {
  TrainOptions options;
  options.batch = 4;
  options.seq_len = 128;
  options.accumulation = 2;
  options.tokens = 12 * options.tokens_per_step();
  options.validation_batches = 1;
  options.deterministic = true;
  return options;
}

TEST(GpuTraining, DeterministicRunsAreTheSameWithGraphsAndWithout) {
  const TrainOptions options = small_training();
  const Trained first = trained(options), second = trained(options), one_by_one = trained(options, Queued::one_by_one);
  const Trained measured = trained(options, Queued::measured);
  ASSERT_EQ(first.losses.size(), 12);
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_EQ(first.norms, second.norms);
  EXPECT_TRUE(at::equal(first.embedding, second.embedding));
  EXPECT_EQ(first.losses, one_by_one.losses);
  EXPECT_TRUE(at::equal(first.embedding, one_by_one.embedding));
  EXPECT_EQ(first.losses, measured.losses);
  EXPECT_TRUE(at::equal(first.embedding, measured.embedding));
  EXPECT_LT(first.losses.back(), first.losses.front());
}

// The first measured update comes after others were recorded, in whose memory it then works; passes of the same update
// follow it.
TEST(GpuTraining, MeasuresTheSameWithGraphsAndWithout) {
  const TrainOptions options = small_training();
  const Corpus corpus = random_corpus(options, small_config().vocabulary, options.steps());
  const MetricSelection all("all", "test");
  const auto measured = [&](bool one_by_one) {
    Trainer trainer(make_decoder(small_config(), 1, gpu().device), options, 1, corpus, gpu());
    PartTimer timer(gpu());
    trainer.time_parts(one_by_one ? &timer : nullptr);
    std::vector<HeadMeasurements> found;
    const auto add = [&](const std::optional<StepRecord>& update) {
      if (update && update->measurer) found.push_back(update->measurer->finish());
    };
    for (std::int64_t i = 0; i < options.steps(); ++i) add(trainer.step(i >= 3 && i % 3 != 1 ? &all : nullptr));
    add(trainer.wait());
    return found;
  };
  const std::vector<HeadMeasurements> graphs = measured(false), one_by_one = measured(true);
  ASSERT_EQ(graphs.size(), 6);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    EXPECT_EQ(graphs[i].layers, one_by_one[i].layers) << "measurement " << i;
    EXPECT_EQ(graphs[i].gains.k, one_by_one[i].gains.k);
  }
}

// One rank exchanges with itself. The graphs are then split, and gradients of upper layers travel in the backward pass:
// the layers of the second model are as large as a piece. Where gradients are sent once, nothing is added in another
// order. In order, each forward step has gradients of its own, which are added afterwards: a product that adds to what
// is there rounds otherwise. Muon raises that: it gives directions without a gradient the size of those with one.
// Weights that begin one rounding away tell how far it may go.
TEST(GpuTraining, OneRankThroughNcclTrainsAsWithoutRanks) {
  DecoderConfig large = small_config();
  large.d_model = 1024;
  large.heads = 16;
  large.kv_heads = 8;
  large.d_k = 64;
  large.d_ff = 4096;
  TrainOptions options = small_training();
  options.tokens = 6 * options.tokens_per_step();
  for (const DecoderConfig& config : {small_config(), large}) {
    const Trained alone = trained(options, Queued::graphs, Ranks::one(), config);
    const Trained rounded = trained(options, Queued::graphs, Ranks::one(), config, /*is_nudged=*/true);
    const double rounding = relative_error(rounded.embedding, alone.embedding);
    for (const RanksReduce reduce : {RanksReduce::ring, RanksReduce::ordered}) {
      for (const Queued queued : {Queued::graphs, Queued::measured, Queued::one_by_one}) {
        const bool in_order = reduce == RanksReduce::ordered;
        SCOPED_TRACE(testing::Message() << "d_model " << config.d_model << ", queued " << static_cast<int>(queued)
                                        << (in_order ? ", in order" : ", once"));
        const Ranks ranks(test::place_of_rendezvous(), {.backend = RanksBackend::nccl, .reduce = reduce},
                          [] { return RankDevice{gpu().device}; });
        ASSERT_TRUE(ranks.queued());
        const Trained together = trained(options, queued, ranks, config);
        ASSERT_EQ(together.losses.size(), alone.losses.size());
        EXPECT_EQ(together.losses[0], alone.losses[0]);
        if (in_order) {
          EXPECT_NEAR(together.norms[0], alone.norms[0], 1e-6 * alone.norms[0]);  // float32 sums of 2^24 elements
          EXPECT_LT(relative_error(together.embedding, alone.embedding), rounding);
        } else {
          EXPECT_EQ(together.losses, alone.losses);
          EXPECT_EQ(together.norms, alone.norms);
          EXPECT_TRUE(at::equal(together.embedding, alone.embedding));
        }
      }
    }
  }
}

TEST(GpuTraining, RecomputedLayersGiveTheSame) {
  TrainOptions options = small_training();
  const Trained kept = trained(options);
  options.recompute = true;
  const Trained twice = trained(options);
  EXPECT_EQ(twice.losses, kept.losses);
  EXPECT_EQ(twice.norms, kept.norms);
  EXPECT_TRUE(at::equal(twice.embedding, kept.embedding));
}

TEST(GpuTraining, ADeterministicRunGoesOnFromACheckpoint) {
  const TrainOptions options = small_training();
  const Corpus corpus = random_corpus(options, small_config().vocabulary, options.steps());
  const test::TemporaryFolder folder;
  std::vector<double> losses;
  const auto add = [&](const std::optional<StepRecord>& record) {
    if (record) losses.push_back(record->loss);
  };
  {
    Trainer trainer(make_decoder(small_config(), 1, gpu().device), options, 1, corpus, gpu());
    for (int i = 0; i < 5; ++i) add(trainer.step());
    add(trainer.wait());
    CheckpointState state;
    state.step = trainer.steps_done();
    state.config = nlohmann::ordered_json::object();
    save_checkpoint(folder.path(), trainer, state, 1);
  }
  Trainer trainer(empty_decoder(small_config(), gpu().device), options, 1, corpus, gpu());
  load_checkpoint(*latest_checkpoint(folder.path()), trainer);
  for (std::int64_t i = 5; i < options.steps(); ++i) add(trainer.step());
  add(trainer.wait());
  EXPECT_EQ(losses, trained(options).losses);
}

// What autograd makes of the composed model, with the CPU's optimizers in float32, is near: the first loss to rounding,
// the others within what bfloat16 products change.
TEST(GpuTraining, FollowsTheCpu) {
  const TrainOptions options = small_training();
  const Corpus corpus = random_corpus(options, small_config().vocabulary, options.steps());
  Trainer cpu(make_decoder(small_config(), 1), options, 1, corpus, choose_device("cpu"));
  const Trained there = trained(options);
  for (std::size_t i = 0; i < 12; ++i) {
    const StepRecord record = *cpu.step();
    EXPECT_NEAR(there.losses[i], record.loss, i == 0 ? 2e-3 : 2e-2) << i;
    EXPECT_NEAR(there.norms[i], record.grad_norm, 0.05 * record.grad_norm) << i;
  }
}

TEST(GpuTraining, StopsAtALossThatIsNotFinite) {
  TrainOptions options = small_training();
  const Corpus corpus = random_corpus(options, small_config().vocabulary, options.steps());
  Trainer trainer(make_decoder(small_config(), 1, gpu().device), options, 1, corpus, gpu());
  for (int i = 0; i < 3; ++i) trainer.step();
  trainer.wait();
  const at::Tensor before = trainer.model().embedding.detach().clone();
  {
    const at::NoGradGuard no_gradients;
    trainer.model().layers[1].attention_norm.gain.fill_(std::numeric_limits<float>::quiet_NaN());
  }
  trainer.step();  // the fourth, which is not finite
  try {
    trainer.step();
    ADD_FAILURE() << "went on";
  } catch (const NotFinite& failure) {
    EXPECT_THAT(failure.found, testing::HasSubstr("step 4: loss nan"));
  }
  EXPECT_EQ(trainer.steps_done(), 3);
  EXPECT_TRUE(at::equal(trainer.model().embedding, before));
}

}  // namespace
}  // namespace headscope
