#include "ops/cpu/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "core/parallel.h"
#include "ops/cpu/vector.h"

namespace headscope::cpu {
namespace {

// A tile is tile_rows queries of one head against block_keys keys at a time. Its scores, 24 kB, and a panel of keys or
// values stay in the first-level cache. A product of `rows_at_once` rows and a panel takes 12 of the 16 registers of
// AVX2, so two multiply-adds can start in every cycle.
constexpr std::int64_t rows_at_once = 6, tile_rows = 4 * rows_at_once, block_keys = 256, panel = 2 * vector_width;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

// Runs work(next) on torch's number of threads; next() gives each of the tasks 0 … count - 1 once, then -1.
template <class Work>
void share(std::int64_t count, Work&& work) {
  std::atomic<std::int64_t> taken = 0;
  const auto next = [&] {
    const std::int64_t task = taken++;
    return task < count ? task : -1;
  };
  const auto threads = static_cast<std::size_t>(std::min<std::int64_t>(count, at::get_num_threads()));
  parallel_for(threads, threads, [&](std::size_t) { work(next); });
}

// c[r][0..15] = (c[r][0..15] +) Σ_j a[r][j] · b[j][0..15] for six rows.
void product(const float* a, std::int64_t a_step, const float* b, std::int64_t depth, float* c, std::int64_t c_step,
             bool add) {
  Vector low[rows_at_once], high[rows_at_once];
#pragma GCC unroll 6
  for (std::int64_t r = 0; r < rows_at_once; ++r) {
    low[r] = add ? load(c + r * c_step) : Vector{};
    high[r] = add ? load(c + r * c_step + vector_width) : Vector{};
  }
  for (std::int64_t j = 0; j < depth; ++j) {
    const Vector b_low = load(b + j * panel), b_high = load(b + j * panel + vector_width);
#pragma GCC unroll 6
    for (std::int64_t r = 0; r < rows_at_once; ++r) {
      low[r] += a[r * a_step + j] * b_low;
      high[r] += a[r * a_step + j] * b_high;
    }
  }
#pragma GCC unroll 6
  for (std::int64_t r = 0; r < rows_at_once; ++r) {
    store(c + r * c_step, low[r]);
    store(c + r * c_step + vector_width, high[r]);
  }
}

// Keys and values of every sequence and key head in panels: [t / 16][d][16] of keys, [d_value / 16][t][16] of values.
// What fills up the last panel is 0.
class Panels {
 public:
  Panels(const AttentionShape& shape, const HeadRows& k, const HeadRows& v)
      : padded_t_(round_up(shape.t, panel)),
        padded_d_(round_up(shape.d_value, panel)),
        d_(shape.d),
        key_size_(padded_t_ * shape.d),
        value_size_(padded_d_ * padded_t_),
        memory_(at::empty({shape.b * shape.key_heads * (key_size_ + value_size_)}, at::kFloat)),
        keys_(memory_.mutable_data_ptr<float>()),
        values_(keys_ + shape.b * shape.key_heads * key_size_) {
    share(shape.b * shape.key_heads, [&](auto& next) {
      for (std::int64_t index; (index = next()) >= 0;) {
        fill_last(index, shape);
        for (std::int64_t t = 0; t < shape.t; ++t) {
          const float* key = k.at(index / shape.key_heads, t, index % shape.key_heads);
          float* to = keys_ + index * key_size_ + t / panel * panel * d_ + t % panel;
          for (std::int64_t i = 0; i < d_; ++i) to[i * panel] = key[i];
          const float* value = v.at(index / shape.key_heads, t, index % shape.key_heads);
          to = values_ + index * value_size_ + t * panel;
          for (std::int64_t i = 0; i < shape.d_value; ++i) to[i / panel * panel * padded_t_ + i % panel] = value[i];
        }
      }
    });
  }

  // `index`: sequence · key_heads + key head.
  [[nodiscard]] const float* keys(std::int64_t index, std::int64_t first_key) const {
    return keys_ + index * key_size_ + first_key * d_;
  }
  [[nodiscard]] const float* values(std::int64_t index, std::int64_t dimension, std::int64_t first_key) const {
    return values_ + index * value_size_ + dimension * padded_t_ + first_key * panel;
  }
  [[nodiscard]] std::int64_t padded_d() const { return padded_d_; }

 private:
  // What is no key or no value in the last panels is 0.
  void fill_last(std::int64_t index, const AttentionShape& shape) {
    const std::int64_t whole_t = shape.t / panel * panel, whole_d = shape.d_value / panel * panel;
    if (whole_t < padded_t_) std::fill_n(keys_ + index * key_size_ + whole_t * d_, panel * d_, 0.0F);
    float* values = values_ + index * value_size_;
    if (whole_d < padded_d_) std::fill_n(values + whole_d * padded_t_, panel * padded_t_, 0.0F);
    for (std::int64_t i = 0; i < padded_d_; i += panel)
      std::fill(values + i * padded_t_ + shape.t * panel, values + (i + panel) * padded_t_, 0.0F);
  }

  std::int64_t padded_t_, padded_d_, d_, key_size_, value_size_;
  at::Tensor memory_;  // pages of an earlier pass, where LargeTensors keeps them
  float* keys_;
  float* values_;
};

// One tile of queries, with the softmax carried on from block to block (Milakov and Gimelshein 2018; Dao et al. 2022):
// the largest score so far, the sum of exponentials relative to it, and their sum with the values.
class Tile {
 public:
  Tile(const AttentionShape& shape, const Panels& panels)
      : shape_(shape),
        panels_(panels),
        width_(panels.padded_d()),
        queries_(static_cast<std::size_t>(tile_rows * shape.d)),
        scores_(static_cast<std::size_t>(tile_rows * block_keys)),
        sums_(static_cast<std::size_t>(tile_rows * width_)) {}

  void run(const HeadRows& q, std::int64_t b, std::int64_t head, std::int64_t first, float* out) {
    const std::int64_t rows = std::min(tile_rows, shape_.t - first), to = first + rows;
    const std::int64_t index = b * shape_.key_heads + head * shape_.key_heads / shape_.heads;
    begin(q, b, head, first, rows);
    for (std::int64_t key = first_key(first) / panel * panel; key < to; key += block_keys)
      add_block(index, first, rows, key, std::min(block_keys, to - key));
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = out + ((b * shape_.t + first + r) * shape_.heads + head) * shape_.d_value;
      const auto inverse = static_cast<float>(1 / weight_[r]);
      for (std::int64_t i = 0; i < shape_.d_value; ++i)
        row[i] = sums_[static_cast<std::size_t>(r * width_ + i)] * inverse;
    }
  }

 private:
  [[nodiscard]] std::int64_t first_key(std::int64_t query) const {
    return shape_.window == 0 ? 0 : std::max<std::int64_t>(0, query + 1 - shape_.window);
  }

  void begin(const HeadRows& q, std::int64_t b, std::int64_t head, std::int64_t first, std::int64_t rows) {
    std::fill(queries_.begin(), queries_.end(), 0.0F);
    std::fill(sums_.begin(), sums_.end(), 0.0F);
    for (std::int64_t r = 0; r < tile_rows; ++r) {
      largest_[r] = -std::numeric_limits<float>::infinity();
      weight_[r] = 0;
      if (r >= rows) continue;
      const float* query = q.at(b, first + r, head);
      float* scaled = queries_.data() + r * shape_.d;
      for (std::int64_t i = 0; i < shape_.d; ++i) scaled[i] = query[i] * shape_.scale;
    }
  }

  // The keys from `key` on, which begins a panel; `count` of them.
  void add_block(std::int64_t index, std::int64_t first, std::int64_t rows, std::int64_t key, std::int64_t count) {
    for (std::int64_t p = 0; p < count; p += panel)
      for (std::int64_t r = 0; r < rows; r += rows_at_once)
        product(queries_.data() + r * shape_.d, shape_.d, panels_.keys(index, key + p), shape_.d,
                scores_.data() + r * block_keys + p, block_keys, /*add=*/false);
    for (std::int64_t r = 0; r < rows; ++r) add_row(r, first + r, key, count);
    for (std::int64_t i = 0; i < width_; i += panel)
      for (std::int64_t r = 0; r < rows; r += rows_at_once)
        product(scores_.data() + r * block_keys, block_keys, panels_.values(index, i, key), count,
                sums_.data() + r * width_ + i, width_, /*add=*/true);
  }

  // Turns the scores of a row into exponentials, 0 where the query does not see the key.
  void add_row(std::int64_t r, std::int64_t query, std::int64_t key, std::int64_t count) {
    float* row = scores_.data() + r * block_keys;
    const std::int64_t begin = std::max<std::int64_t>(0, first_key(query) - key);
    const std::int64_t end = std::clamp<std::int64_t>(query + 1 - key, begin, std::max(begin, count));
    const std::int64_t padded = round_up(count, vector_width);
    if (begin == end) return std::fill(row, row + padded, 0.0F);
    if (shape_.cap != 0)
      for (std::int64_t j = begin; j < end; ++j) row[j] = shape_.cap * std::tanh(row[j] / shape_.cap);
    constexpr float none = -std::numeric_limits<float>::infinity();
    std::fill(row, row + begin, none);
    std::fill(row + end, row + padded, none);
    Vector top = load(row);
    for (std::int64_t j = vector_width; j < padded; j += vector_width) top = larger_of(top, load(row + j));
    const float largest = std::max(largest_[r], largest_of(top));
    Vector sum{};
    for (std::int64_t j = 0; j < padded; j += vector_width) {
      const Vector e = exp_nonpositive(load(row + j) - largest);
      store(row + j, e);
      sum += e;
    }
    std::fill(row, row + begin, 0.0F);  // and not 1e-38
    std::fill(row + end, row + padded, 0.0F);
    if (largest > largest_[r]) {
      const float smaller = std::exp(largest_[r] - largest);
      for (std::int64_t i = 0; i < width_; ++i) sums_[static_cast<std::size_t>(r * width_ + i)] *= smaller;
      weight_[r] *= smaller;
      largest_[r] = largest;
    }
    weight_[r] += sum_of(sum);
  }

  const AttentionShape& shape_;
  const Panels& panels_;
  std::int64_t width_;
  std::vector<float> queries_, scores_, sums_;
  float largest_[tile_rows];
  double weight_[tile_rows];
};

}  // namespace

void causal_attention(const AttentionShape& shape, const HeadRows& q, const HeadRows& k, const HeadRows& v,
                      float* out) {
  const Panels panels(shape, k, v);
  const std::int64_t tiles = (shape.t + tile_rows - 1) / tile_rows, tasks = shape.b * shape.heads * tiles;
  share(tasks, [&](auto& next) {
    Tile tile(shape, panels);
    for (std::int64_t task; (task = next()) >= 0;) {
      const std::int64_t of_tile = tiles - 1 - task % tiles;  // the longest first, so that threads end together
      tile.run(q, task / tiles / shape.heads, task / tiles % shape.heads, of_tile * tile_rows, out);
    }
  });
}

}  // namespace headscope::cpu
