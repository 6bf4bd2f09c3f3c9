#include "optim/shares.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>

#include "model/training_pass.h"
#include "optim/optimizers.h"
#include "support/optimized_models.h"
#include "support/rank_threads.h"

namespace headscope {
namespace {

using test::on_ranks;
using test::optimized_model;
using test::trained;
using test::values_of;

void give_gradients(const Decoder& model, double size = 1) {
  std::size_t i = 0;
  for (const auto& [name, value] : trained(model)) {
    const at::Tensor gradient = test::random_gradient(value, i++, 1, size);
    at::Tensor(value).mutable_grad() = gradient.to(value.scalar_type());
  }
}

TEST(Clip, ScalesToTheLimitAndReturnsTheNormBefore) {
  for (const DecoderConfig& config : test::optimized_configs()) {
    for (const double size : {1.0, 1e-5}) {  // the second is not clipped
      const Decoder model = optimized_model(config, false, at::kCPU, at::kDouble);
      const Decoder other = optimized_model(config, false, at::kCPU, at::kDouble);
      give_gradients(model, size);
      give_gradients(other, size);
      const Shares shares(model, {});
      const double norm = shares.clip(shares.norms(), 1), expected = test::clip_gradients(values_of(trained(other)), 1);
      EXPECT_NEAR(norm, expected, 1e-12 * expected);
      for (std::size_t i = 0; i < trained(model).size(); ++i)
        EXPECT_TRUE(at::allclose(trained(model)[i].second.grad(), trained(other)[i].second.grad(), 1e-12, 0));
    }
  }
}

TEST(Clip, LeavesGradientsThatAreNotFiniteAndNamesTheirParameter) {
  const Decoder model = optimized_model(test::optimized_configs()[0], false, at::kCPU, at::kFloat);
  give_gradients(model);
  const auto [name, value] = trained(model)[3];
  value.grad().view(-1)[7] = std::nan("");
  const at::Tensor embedding = trained(model)[0].second.grad().clone();
  const Shares shares(model, {});
  EXPECT_TRUE(std::isnan(shares.clip(shares.norms(), 1)));
  EXPECT_TRUE(at::equal(trained(model)[0].second.grad(), embedding));
  EXPECT_EQ(shares.largest(shares.norms()), name);
}

// Every element of every trained parameter belongs to one rank, and a matrix of Muon to one as a whole.
TEST(Shares, EveryElementHasOneOwner) {
  for (const DecoderConfig& config : test::optimized_configs()) {
    const Decoder model = optimized_model(config, true, at::kCPU, at::kFloat);
    for (const int size : {1, 2, 3, 4, 7, 40}) {
      for (const auto& [name, value] : trained(model)) value.mutable_grad() = at::zeros_like(value).detach();
      std::set<std::string> matrices;
      std::size_t count = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Shares shares(model, {rank, size});
        for (const LayerMatrix& matrix : shares.matrices()) {
          matrices.insert(matrix.name);
          ++count;
          for (const at::Tensor& part : matrix.parts) part.grad().add_(1);
        }
        for (const Share& share : shares.others()) share.rows_of(share.parameter.grad()).add_(1);
      }
      EXPECT_EQ(matrices.size(), count);
      EXPECT_EQ(count, layer_matrices(model).size());
      for (const auto& [name, value] : trained(model)) EXPECT_TRUE(value.grad().eq(1).all().item<bool>()) << name;
    }
  }
}

// Ranks one after another in this process: each updates what it owns; together they make the update of one, bit for
// bit, and have its state.
TEST(Shares, OfAllRanksTogetherAreTheUpdateOfOne) {
  for (const DecoderConfig& config : test::optimized_configs()) {
    for (const int size : {2, 3, 4}) {
      const OptimizerOptions options = test::decay_options();
      const Decoder model = optimized_model(config, false, at::kCPU, at::kFloat);
      const Decoder other = optimized_model(config, false, at::kCPU, at::kFloat);
      Optimizers whole(other, options);
      std::vector<Optimizers> parts;
      for (int rank = 0; rank < size; ++rank) parts.emplace_back(model, options, Sharing{rank, size});
      for (int step = 0; step < 3; ++step) {
        give_gradients(model);
        give_gradients(other);
        for (Optimizers& part : parts) {
          for (const Share& share : part.shares().others())
            if (!share.is_whole()) share.own.mutable_grad() = share.rows_of(share.parameter.grad());
          part.step(0.5);
        }
        whole.step(0.5);
      }
      for (std::size_t i = 0; i < trained(model).size(); ++i)
        EXPECT_TRUE(at::equal(trained(model)[i].second, trained(other)[i].second)) << trained(model)[i].first << size;
      // A checkpoint of one rank is taken apart by the others: their state is the same.
      for (const Optimizers& part : parts) {
        NamedTensors before;
        for (const auto& [name, value] : part.state()) before.emplace_back(name, value.clone());
        const NamedTensors all = whole.state();
        part.load_state([&](const std::string& name, const at::Tensor& value) {
          value.copy_(std::ranges::find(all, name, &NamedTensors::value_type::first)->second);
        });
        for (std::size_t i = 0; i < before.size(); ++i)
          EXPECT_TRUE(at::equal(part.state()[i].second, before[i].second)) << before[i].first;
      }
    }
  }
}

// More ranks than there are parameters to own.
TEST(Shares, AStateIsWholeWhereSomeRanksOwnNothing) {
  const DecoderConfig config = test::optimized_configs()[0];
  const OptimizerOptions options = test::decay_options();
  const Decoder model = optimized_model(config, true, at::kCPU, at::kFloat);
  const NamedTensors expected = Optimizers(model, options).state();
  std::uint64_t seed = 0;
  for (const auto& [name, value] : expected) value.copy_(test::random_tensor(value.sizes().vec(), ++seed));
  std::atomic<int> idle = 0;
  on_ranks(20, {.backend = RanksBackend::gloo}, [&](const Ranks& ranks) {
    const Optimizers own(model, options, {ranks.rank(), ranks.size(), /*exchanged=*/true});
    own.load_state([&](const std::string& name, const at::Tensor& value) {
      value.copy_(std::ranges::find(expected, name, &NamedTensors::value_type::first)->second);
    });
    idle += own.state().empty() ? 1 : 0;
    const NamedTensors whole = own.whole_state(model, ranks);
    if (!ranks.first()) return;
    ASSERT_EQ(whole.size(), expected.size());
    for (const auto& [name, value] : expected)
      EXPECT_TRUE(at::equal(std::ranges::find(whole, name, &NamedTensors::value_type::first)->second, value)) << name;
  });
  EXPECT_GT(idle, 0);
}

constexpr std::int64_t small_piece = 1000;  // of elements: the models of these tests have some pieces then

RanksOptions gloo(RanksReduce reduce) {
  return {.backend = RanksBackend::gloo, .reduce = reduce};
}

// Every rank gives other gradients for each of two forward steps. Of what it owns it gets the sum, in the order of the
// forward steps, bit for bit; whether pieces travel in the backward pass or behind it, and however many there are.
TEST(Shares, AddGradientsAsOneProcessDoes) {
  const auto gradient = [](const at::Tensor& value, std::size_t i, std::int64_t forward_step) {
    return test::random_gradient(value, i, forward_step, 1);
  };
  for (const DecoderConfig& config : test::optimized_configs()) {
    for (const int size : {1, 2, 3}) {
      for (const std::int64_t least_piece : {small_piece, std::int64_t{1} << 40}) {
        on_ranks(size, gloo(RanksReduce::ordered), [&](const Ranks& ranks) {
          const Decoder model = optimized_model(config, false, at::kCPU, at::kFloat);
          Shares shares(model, {ranks.rank(), size, /*exchanged=*/true, least_piece});
          std::int64_t pieces = 0;
          for (std::int64_t layer = 0; layer < config.layers; ++layer) pieces += shares.ends_piece(layer) ? 1 : 0;
          if (config.layers == test::even_config().layers) {  // two ranks share three matrices in pairs of layers
            EXPECT_EQ(pieces, least_piece != small_piece ? 0 : size == 2 ? 2 : 4);
          }
          for (std::int64_t round = 0; round < 2; ++round) {
            std::size_t i = 0;
            for (const auto& [name, value] : trained(model))
              value.mutable_grad() = gradient(value, i++, ranks.rank() + round * size);
            for (std::int64_t layer = config.layers - 1; layer >= 0; --layer)
              shares.layer_done(ranks, /*is_last=*/round == 1, layer);
            shares.add_gradients(ranks, /*is_last=*/round == 1);
          }
          const auto check = [&](const std::string& name, const at::Tensor& own, const auto& rows_of) {
            std::size_t i = 0;
            for (const auto& [other, value] : trained(model)) {
              const std::size_t index = i++;
              if (other != name) continue;
              at::Tensor sum = gradient(value, index, 0);
              for (std::int64_t step = 1; step < 2 * size; ++step) sum += gradient(value, index, step);
              EXPECT_TRUE(at::equal(own.grad(), rows_of(sum))) << name << " on rank " << ranks.rank() << " of " << size;
            }
          };
          for (const Share& share : shares.others())
            check(share.name, share.own, [&](const at::Tensor& of) { return share.rows_of(of); });
          std::size_t matrices = 0;
          for (const LayerMatrix& matrix : shares.matrices())
            for (const at::Tensor& part : matrix.parts)
              for (const auto& [name, value] : trained(model))
                if (value.const_data_ptr() == part.const_data_ptr()) {
                  check(name, part, [](const at::Tensor& of) { return of; });
                  ++matrices;
                }
          EXPECT_GE(matrices, shares.matrices().size());
        });
      }
    }
  }
}

// Updates as a GPU makes them: gradients stay in one place, those of upper layers travel while the pass is at work on
// the lower ones, and each rank updates its own. float32 sums in another order: 1e-5 of a weight's size.
TEST(Shares, UpdatesWithPiecesInTheBackwardPassAreThoseOfOneProcess) {
  const DecoderConfig config = test::even_config();
  const OptimizerOptions options = test::decay_options();
  constexpr int forward_steps = 6, updates = 3;
  const auto batch = [&](int update, int i) {
    at::Generator generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(100 * update + i));
    return at::randint(config.vocabulary, {2, 12}, generator, at::TensorOptions(at::kLong));
  };
  const auto scalars = [] { return DeviceUpdate{at::ones({}), at::zeros({}), at::zeros({}), at::ones({}, at::kInt)}; };
  const auto pass_on = [&](TrainingPass& pass, int update, int i, bool first, at::Tensor& loss,
                           const TrainingPass::LayerDone& layer_done) {
    const at::Tensor tokens = batch(update, i);
    pass.run(tokens, tokens.roll(-1, 1), {1.0 / forward_steps, first}, loss, {}, layer_done);
  };

  const Decoder expected = optimized_model(config, false, at::kCPU, at::kFloat);
  Optimizers whole(expected, options);
  whole.keep_gradients();
  TrainingPass one_pass(expected, {});
  std::vector<double> norms;
  for (int update = 0; update < updates; ++update) {
    DeviceUpdate numbers = scalars();
    for (int i = 0; i < forward_steps; ++i) pass_on(one_pass, update, i, i == 0, numbers.loss, {});
    whole.step(numbers, 1);
    norms.push_back(numbers.grad_norm.item<double>());
  }

  for (const RanksReduce reduce : {RanksReduce::ordered, RanksReduce::ring}) {
    for (const int size : {1, 2, 3}) {
      on_ranks(size, gloo(reduce), [&](const Ranks& ranks) {
        const Decoder model = optimized_model(config, false, at::kCPU, at::kFloat);
        Optimizers own(model, options, {ranks.rank(), size, /*exchanged=*/true, small_piece});
        own.keep_gradients();
        EXPECT_TRUE(own.shares().ends_piece(0));
        EXPECT_TRUE(own.shares().ends_piece(2));  // in the middle of the pass
        TrainingPass pass(model, {});
        for (int update = 0; update < updates; ++update) {
          DeviceUpdate numbers = scalars();
          for (int i = ranks.rank(); i < forward_steps; i += size) {
            const bool first = i == ranks.rank() || ranks.ordered(), last = i + size >= forward_steps;
            pass_on(pass, update, i, first, numbers.loss,
                    [&](std::int64_t layer) { own.shares().layer_done(ranks, last, layer); });
            own.shares().add_gradients(ranks, last);
          }
          const at::Tensor& squares = own.sum_squares();
          squares.copy_(ranks.all_gather(squares).sum(0));
          own.step_own(numbers, 1);
          own.shares().pack_weights();
          own.shares().exchange_weights(ranks);
          own.unpack_weights();
          EXPECT_NEAR(numbers.grad_norm.item<double>(), norms[static_cast<std::size_t>(update)], 1e-4);
        }
        const NamedTensors here = trained(model), there = trained(expected);
        for (std::size_t i = 0; i < here.size(); ++i)
          EXPECT_LT((here[i].second - there[i].second).norm().item<double>(),
                    1e-5 * there[i].second.norm().item<double>())
              << here[i].first << " on rank " << ranks.rank() << " of " << size;
      });
    }
  }
}

}  // namespace
}  // namespace headscope
