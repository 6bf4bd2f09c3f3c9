#include "probe/head_attention.h"

#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "core/random.h"

namespace headscope {
namespace {

using Matrix = std::vector<std::vector<double>>;

Decoder small_model(const std::vector<std::int64_t>& windows = {}, double cap = 0) {
  DecoderConfig config;
  config.vocabulary = 50;
  config.d_model = 32;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.d_k = 8;
  config.d_ff = 64;
  Decoder model = make_decoder(config, 3);
  model.config.windows = windows;
  model.config.score_cap = cap;
  return model;
}

at::Tensor random_tokens(std::int64_t b, std::int64_t t) {
  at::Generator generator = at::detail::createCPUGenerator(7);
  return at::randint(0, 50, {b, t}, generator, at::kLong);
}

// Softmax in float64, key by key, from the queries and keys of a forward pass.
Matrix softmax_rows(const HeadVectors& vectors, std::int64_t sequence, std::int64_t head) {
  const at::Tensor q = vectors.q_rotated_bthd.to(at::kDouble), k = vectors.k_rotated_bthd.to(at::kDouble);
  const std::int64_t t = q.size(1), key_head = head * k.size(2) / q.size(2);
  Matrix rows;
  for (std::int64_t i = 0; i < t; ++i) {
    std::vector<double> row(static_cast<std::size_t>(t), 0.0);
    double sum = 0;
    for (std::int64_t j = 0; j <= i; ++j) {
      if (vectors.scores.window > 0 && j + vectors.scores.window <= i) continue;
      double score = 0;
      for (std::int64_t d = 0; d < q.size(3); ++d)
        score += q[sequence][i][head][d].item<double>() * k[sequence][j][key_head][d].item<double>();
      score *= vectors.scores.scale;
      if (vectors.scores.cap > 0) score = vectors.scores.cap * std::tanh(score / vectors.scores.cap);
      sum += row[static_cast<std::size_t>(j)] = std::exp(score);
    }
    for (double& weight : row) weight /= sum;
    rows.push_back(std::move(row));
  }
  return rows;
}

// [layer][sequence][head]
std::vector<std::vector<std::vector<Matrix>>> all_rows(const Decoder& model, const at::Tensor& tokens_bt) {
  std::vector<std::vector<std::vector<Matrix>>> layers;
  observe_heads(model, tokens_bt, at::kFloat, model.config.layers - 1, [&](std::int64_t, const HeadVectors& vectors) {
    auto& sequences = layers.emplace_back();
    for (std::int64_t b = 0; b < tokens_bt.size(0); ++b) {
      auto& heads = sequences.emplace_back();
      for (std::int64_t head = 0; head < model.config.heads; ++head) heads.push_back(softmax_rows(vectors, b, head));
    }
  });
  return layers;
}

TEST(HeadAttention, IsTheSoftmaxOfTheModelsScores) {
  for (const Decoder& model : {small_model(), small_model({5, 0}), small_model({0, 4}, 0.5)}) {
    const at::Tensor tokens_bt = random_tokens(1, 12);
    const auto expected = all_rows(model, tokens_bt);
    const std::vector<QueryHead> heads = {{1, 2}, {0, 3}, {1, 0}};
    const auto matrices = head_attention(model, tokens_bt[0], heads);
    ASSERT_EQ(matrices.size(), 3U);
    for (std::size_t h = 0; h < heads.size(); ++h) {
      ASSERT_EQ(matrices[h].scalar_type(), at::kFloat);
      const auto& rows = expected[static_cast<std::size_t>(heads[h].layer)][0][static_cast<std::size_t>(heads[h].head)];
      for (std::int64_t i = 0; i < 12; ++i)
        for (std::int64_t j = 0; j < 12; ++j)  // scores below 8 in float32: errors of some eps
          EXPECT_NEAR(matrices[h][i][j].item<double>(), rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)],
                      2e-6);
    }
  }
}

std::vector<Batch> batches_of(const at::Tensor& tokens_bt, std::int64_t batch) {
  std::vector<Batch> batches;
  for (std::int64_t first = 0; first < tokens_bt.size(0); first += batch)
    batches.push_back({tokens_bt.narrow(0, first, batch), {}});
  return batches;
}

struct Place {
  double strength = 0;
  std::int64_t sequence = 0, query = 0, key = 0;
};

// Every query of a head, the strongest first.
std::vector<Place> all_places(const std::vector<std::vector<Matrix>>& sequences, std::size_t head) {
  std::vector<Place> places;
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const Matrix& rows = sequences[b][head];
    for (std::size_t i = 1; i < rows.size(); ++i) {
      Place place{0, static_cast<std::int64_t>(b), static_cast<std::int64_t>(i), 0};
      for (std::size_t j = 1; j <= i; ++j)
        if (rows[i][j] > place.strength)
          place = {rows[i][j], place.sequence, place.query, static_cast<std::int64_t>(j)};
      places.push_back(place);
    }
  }
  std::ranges::stable_sort(places, std::greater<>(), &Place::strength);
  return places;
}

// 120 queries are fewer than the sample: everything is exact.
TEST(Examples, AreThoseOfAllQueriesSorted) {
  constexpr std::int64_t time = 41;
  const Decoder model = small_model({7, 0});
  const at::Tensor tokens_bt = random_tokens(3, time);
  const auto rows = all_rows(model, tokens_bt);
  int batches = 0;
  const auto examples = find_examples(model, batches_of(tokens_bt, 1), 20, [&] { ++batches; });
  EXPECT_EQ(batches, 3);
  ASSERT_EQ(examples.size(), 2U * 4 * 20);
  for (std::size_t e = 0; e < examples.size(); ++e) {
    const AttentionExample& one = examples[e];
    const std::size_t layer = e / 80, head = e / 20 % 4, number = e % 20;
    EXPECT_EQ(one.of, (QueryHead{static_cast<std::int64_t>(layer), static_cast<std::int64_t>(head)}));
    const auto places = all_places(rows[layer], head);
    ASSERT_EQ(places.size(), 120U);
    // The first 8; then the middle of each of 12 parts of the 112 that are left.
    const std::size_t rank = number < 8 ? number : 8 + (2 * (number - 8) + 1) * 112 / 24;
    EXPECT_NEAR(one.strength, places[rank].strength, 2e-6);
    EXPECT_NEAR(one.quantile, (120.0 - static_cast<double>(rank)) / 120, 1e-12);
    EXPECT_EQ(one.sequence, places[rank].sequence);
    EXPECT_EQ(one.query, places[rank].query);
    EXPECT_EQ(one.key, places[rank].key);
    EXPECT_EQ(one.window_first, std::clamp<std::int64_t>(one.query - 16, 0, time - 33));
    ASSERT_EQ(one.weights.size(), 33U);
    const Matrix& matrix = rows[layer][static_cast<std::size_t>(one.sequence)][head];
    for (std::size_t j = 0; j < 33; ++j)
      EXPECT_NEAR(one.weights[j],
                  matrix[static_cast<std::size_t>(one.query)][static_cast<std::size_t>(one.window_first) + j], 2e-6);
  }
}

// More queries than the sample: the strongest are those of all, the others those of the sample that NumPy would draw.
TEST(Examples, OfMuchDataAreFromASampleAndTheStrongestOfAll) {
  constexpr std::int64_t time = 101, sequences = 8;
  const Decoder model = small_model();
  const at::Tensor tokens_bt = random_tokens(sequences, time);
  const auto examples = find_examples(model, batches_of(tokens_bt, 4), 10);
  const auto sample = NumpyGenerator(0).choice(sequences * (time - 1), 512);
  const std::set<std::int64_t> sampled(sample.begin(), sample.end());
  std::vector<at::Tensor> weights;  // [layer] of [b, h, t, t]
  observe_heads(model, tokens_bt, at::kFloat, 1, [&](std::int64_t, const HeadVectors& vectors) {
    weights.push_back(attention_probabilities(vectors.q_rotated_bthd, vectors.k_rotated_bthd, vectors.scores, 0, time));
  });
  for (std::int64_t layer = 0; layer < 2; ++layer)
    for (std::int64_t head = 0; head < 4; ++head) {
      std::vector<double> all, some;
      for (std::int64_t b = 0; b < sequences; ++b)
        for (std::int64_t i = 1; i < time; ++i) {
          const double strength =
              weights[static_cast<std::size_t>(layer)][b][head][i].slice(0, 1, i + 1).max().item<double>();
          all.push_back(strength);
          if (sampled.contains(b * (time - 1) + i - 1)) some.push_back(strength);
        }
      std::ranges::sort(all, std::greater<>());
      std::ranges::sort(some, std::greater<>());
      const std::span own = std::span(examples).subspan(static_cast<std::size_t>(layer * 4 + head) * 10, 10);
      for (std::size_t i = 0; i < 10; ++i) {
        const bool strongest = i < 4;
        if (strongest) EXPECT_NEAR(own[i].strength, all[i], 1e-6);
        if (i > 0) EXPECT_LE(own[i].strength, own[i - 1].strength);
        const std::vector<double>& of = strongest ? all : some;
        const auto larger = std::ranges::count_if(of, [&](double x) { return x > own[i].strength + 1e-9; });
        const auto n = static_cast<double>(of.size());
        EXPECT_NEAR(own[i].quantile, (n - static_cast<double>(larger)) / n,
                    2.5 / n);  // strengths that are equal in float32
        if (strongest) continue;
        EXPECT_TRUE(sampled.contains(own[i].sequence * (time - 1) + own[i].query - 1));
        // The middles of six parts of the sample; the four strongest may be missing in it.
        EXPECT_NEAR(own[i].quantile, 1 - (static_cast<double>(i - 4) + 0.5) / 6, 5.0 / 512);
      }
    }
}

TEST(Examples, AreFewerWhereThereAreFewerQueries) {
  const auto examples = find_examples(small_model(), batches_of(random_tokens(2, 3), 2), 20);
  EXPECT_EQ(examples.size(), 2U * 4 * 4);
  for (const AttentionExample& one : examples) EXPECT_EQ(one.weights.size(), 3U);
}

}  // namespace
}  // namespace headscope
