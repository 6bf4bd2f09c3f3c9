#include "probe/attention_rows.h"

#include <Eigen/Core>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <span>

#include "core/parallel.h"
#include "ops/cpu/vector.h"
#include "probe/workers.h"

namespace headscope {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using HeadRows = Eigen::Map<const RowMajor, 0, Eigen::OuterStride<>>;

constexpr std::int64_t block_rows = 64;  // scores of a block stay in the second-level cache up to 4096 tokens
constexpr std::int64_t lanes = 16;       // rows are padded to a multiple of this
constexpr std::int64_t run = 64;         // values that are summed in float32 before float64 takes over

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

struct Row {
  double entropy = 0;
  float max = 0;
};

// Turns n scores into attention, in place. The memory has room up to a multiple of `lanes`.
// H = ln Z - Σ e·x / Z with x = s - max, e = exp(x), Z = Σ e.
Row softmax_row(float* scores, std::int64_t n) {
  const std::int64_t padded = round_up(n, lanes);
  std::fill(scores + n, scores + padded, -std::numeric_limits<float>::infinity());
  Vector top = load(scores), other_top = load(scores + vector_width);
  for (std::int64_t j = lanes; j < padded; j += lanes) {
    const Vector a = load(scores + j), b = load(scores + j + vector_width);
    top = larger_of(a, top);
    other_top = larger_of(b, other_top);
  }
  const float max = largest_of(larger_of(other_top, top));
  double sum = 0, weighted = 0;
  for (std::int64_t start = 0; start < padded; start += run) {
    Vector sums[2] = {}, products[2] = {};
    for (std::int64_t j = start; j < std::min(start + run, padded); j += lanes) {
      for (std::int64_t half = 0; half < 2; ++half) {
        Vector x = load(scores + j + half * vector_width) - max;
        x = x < -87.0F ? Vector{} - 87.0F : x;
        const Vector e = exp_bounded(x);
        store(scores + j + half * vector_width, e);
        sums[half] += e;
        products[half] += e * x;
      }
    }
    sum += sum_of(sums[0] + sums[1]);
    weighted += sum_of(products[0] + products[1]);
  }
  const auto inverse = static_cast<float>(1 / sum);
  for (std::int64_t j = 0; j < n; ++j) scores[j] *= inverse;
  return {std::max(0.0, std::log(sum) - weighted / sum), max};
}

// -Σ p ln p of n values.
double entropy_of(const float* p, std::int64_t n) {
  double entropy = 0;
  for (std::int64_t j = 0; j < n; ++j)
    if (p[j] > 0) entropy -= static_cast<double>(p[j] * std::log(p[j]));
  return entropy;
}

// Queries and keys of a layer.
struct Layer {
  const float* q = nullptr;
  const float* k = nullptr;
  std::int64_t b = 0, t = 0, heads = 0, key_heads = 0, d = 0;
  float scale = 1, cap = 0;
  std::int64_t window = 0;

  // The first key that row i sees.
  [[nodiscard]] std::int64_t first_key(std::int64_t i) const {
    return window == 0 ? 0 : std::max<std::int64_t>(0, i + 1 - window);
  }

  [[nodiscard]] HeadRows queries(std::int64_t sequence, std::int64_t head, std::int64_t first, std::int64_t n) const {
    return {q + ((sequence * t + first) * heads + head) * d, n, d, Eigen::OuterStride<>(heads * d)};
  }
  [[nodiscard]] HeadRows keys(std::int64_t sequence, std::int64_t head, std::int64_t first, std::int64_t n) const {
    const std::int64_t key_head = head * key_heads / heads;
    return {k + ((sequence * t + first) * key_heads + key_head) * d, n, d, Eigen::OuterStride<>(key_heads * d)};
  }
};

Layer layer_of(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores) {
  return {q_bthd.const_data_ptr<float>(),
          k_bthd.const_data_ptr<float>(),
          q_bthd.size(0),
          q_bthd.size(1),
          q_bthd.size(2),
          k_bthd.size(2),
          q_bthd.size(3),
          static_cast<float>(scores.scale),
          static_cast<float>(scores.cap),
          scores.window};
}

// Memory of one worker.
struct Scratch {
  RowMajor queries, scores, mean;
  explicit Scratch(const Layer& layer)
      : queries(block_rows, layer.d),
        scores(block_rows, round_up(layer.t, lanes) + (layer.window == 0 ? 0 : lanes)),  // padding begins anywhere
        mean(block_rows, round_up(layer.t, lanes)) {}

  // The scores of `rows` queries from `first` on with the keys from `from` up to `to`: column 0 is that of `from`.
  void score(const Layer& layer, std::int64_t sequence, std::int64_t head, std::int64_t first, std::int64_t rows,
             std::int64_t from, std::int64_t to) {
    queries.topRows(rows) = layer.queries(sequence, head, first, rows) * layer.scale;
    auto here = scores.topLeftCorner(rows, to - from);
    here.noalias() = queries.topRows(rows) * layer.keys(sequence, head, from, to - from).transpose();
    if (layer.cap != 0) here = layer.cap * (here / layer.cap).array().tanh();
  }
};

// Sums over the rows of one block, of all sequences.
struct BlockSums {
  HeadSums sums;
  std::vector<float> columns;  // [b][t]: attention that each key gets
};

BlockSums causal_block(const Layer& layer, std::int64_t head, std::int64_t first, Scratch& scratch) {
  const std::int64_t rows = std::min(block_rows, layer.t - first), to = first + rows, from = layer.first_key(first);
  BlockSums block;
  block.columns.resize(static_cast<std::size_t>(layer.b * layer.t));
  block.sums.max_logit = -std::numeric_limits<double>::infinity();
  scratch.mean.topLeftCorner(rows, to - from).setZero();
  double row_entropies[block_rows] = {};
  for (std::int64_t sequence = 0; sequence < layer.b; ++sequence) {
    scratch.score(layer, sequence, head, first, rows, from, to);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t i = first + r, first_key = layer.first_key(i), n = i + 1 - first_key;
      float* row = scratch.scores.data() + r * scratch.scores.cols() + first_key - from;  // of the keys that it sees
      float* mean = scratch.mean.data() + r * scratch.mean.cols() + first_key - from;
      float* received = block.columns.data() + sequence * layer.t + first_key;
      const Row result = softmax_row(row, n);
      for (std::int64_t j = 0; j < n; ++j) {
        received[j] += row[j];
        mean[j] += row[j];
      }
      row_entropies[r] += result.entropy;
      block.sums.max_logit = std::isnan(result.max) ? result.max : std::max<double>(block.sums.max_logit, result.max);
      block.sums.self += row[n - 1];
      if (i == 0) continue;
      if (first_key == 0) block.sums.sink += row[0];
      if (n > 1) block.sums.previous += row[n - 2];
    }
  }
  const auto sequences = static_cast<double>(layer.b);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t i = first + r, first_key = layer.first_key(i), n = i + 1 - first_key;
    block.sums.entropy += row_entropies[r];
    if (i == 0) continue;
    const double widest = std::log(static_cast<double>(n));
    block.sums.entropy_norm += row_entropies[r] / widest;
    auto mean = scratch.mean.row(r).segment(first_key - from, n);
    mean /= static_cast<float>(layer.b);
    const double between = entropy_of(mean.data(), n) - row_entropies[r] / sequences;
    block.sums.divergence += std::max(0.0, between) / std::min(std::log(sequences), widest);
  }
  return block;
}

// Runs task(index, scratch) for every index, whichever worker is free.
template <class Task>
void share(const Layer& layer, std::int64_t tasks, Task&& task) {
  const std::size_t threads = std::min(static_cast<std::size_t>(tasks), workers());
  std::atomic<std::int64_t> next = 0;
  parallel_for(threads, threads, [&](std::size_t) {
    Scratch scratch(layer);
    for (std::int64_t index; (index = next++) < tasks;) task(index, scratch);
  });
}

// Adds up the blocks of a head in their order: the sums do not depend on the number of workers.
HeadSums head_sums(const Layer& layer, std::span<const BlockSums> blocks) {
  HeadSums total;
  total.max_logit = -std::numeric_limits<double>::infinity();
  std::vector<double> received(static_cast<std::size_t>(layer.b * layer.t));
  for (const BlockSums& block : blocks) {
    add(total, block.sums);
    for (std::size_t i = 0; i < received.size(); ++i) received[i] += block.columns[i];
  }
  for (const double sum : received) {
    const double p = sum / static_cast<double>(layer.t);
    if (p > 0) total.profile_entropy -= p * std::log(p);
  }
  return total;
}

}  // namespace

void add(HeadSums& total, const HeadSums& part) {
  total.entropy += part.entropy;
  total.entropy_norm += part.entropy_norm;
  total.sink += part.sink;
  total.previous += part.previous;
  total.divergence += part.divergence;
  total.self += part.self;
  total.max_logit = std::isnan(part.max_logit) ? part.max_logit : std::max(total.max_logit, part.max_logit);
  total.profile_entropy += part.profile_entropy;
}

std::vector<HeadSums> causal_row_sums(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores) {
  const Layer layer = layer_of(q_bthd, k_bthd, scores);
  const std::int64_t blocks = (layer.t + block_rows - 1) / block_rows;
  std::vector<BlockSums> parts(static_cast<std::size_t>(layer.heads * blocks));
  share(layer, layer.heads * blocks, [&](std::int64_t index, Scratch& scratch) {
    const std::int64_t later_first = blocks - 1 - index % blocks;  // the longest first, so that workers end together
    parts[static_cast<std::size_t>(index / blocks * blocks + later_first)] =
        causal_block(layer, index / blocks, later_first * block_rows, scratch);
  });
  std::vector<HeadSums> heads;
  for (std::int64_t head = 0; head < layer.heads; ++head)
    heads.push_back(head_sums(
        layer, std::span(parts).subspan(static_cast<std::size_t>(head * blocks), static_cast<std::size_t>(blocks))));
  return heads;
}

std::vector<double> unmasked_entropies(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores) {
  const Layer layer = layer_of(q_bthd, k_bthd, scores);
  std::vector<double> sums(static_cast<std::size_t>(layer.heads * layer.b));
  share(layer, layer.heads * layer.b, [&](std::int64_t index, Scratch& scratch) {
    for (std::int64_t first = 0; first < layer.t; first += block_rows) {
      const std::int64_t rows = std::min(block_rows, layer.t - first);
      scratch.score(layer, index % layer.b, index / layer.b, first, rows, 0, layer.t);
      for (std::int64_t r = 0; r < rows; ++r)
        sums[static_cast<std::size_t>(index)] +=
            softmax_row(scratch.scores.data() + r * scratch.scores.cols(), layer.t).entropy;
    }
  });
  std::vector<double> means;
  for (std::int64_t head = 0; head < layer.heads; ++head) {
    double sum = 0;
    for (std::int64_t i = 0; i < layer.b; ++i) sum += sums[static_cast<std::size_t>(head * layer.b + i)];
    means.push_back(sum / static_cast<double>(layer.b * layer.t));
  }
  return means;
}

}  // namespace headscope
