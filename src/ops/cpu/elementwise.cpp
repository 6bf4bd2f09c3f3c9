#include "ops/cpu/elementwise.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "ops/cpu/vector.h"

namespace headscope::cpu {
namespace {

// Calls work(first, last) for parts of 0 … count, on torch's number of threads where there is work for them.
template <class Work>
void in_parts(std::int64_t count, std::int64_t numbers_each, const Work& work) {
  constexpr std::int64_t least = 1 << 16;  // numbers of a part: a thread starts in the time of as many
  const std::int64_t parts =
      std::clamp<std::int64_t>(count * numbers_each / least, 1, std::max<std::int64_t>(1, at::get_num_threads()));
  parallel_for(static_cast<std::size_t>(parts), static_cast<std::size_t>(parts), [&](std::size_t part) {
    const auto i = static_cast<std::int64_t>(part);
    work(count * i / parts, count * (i + 1) / parts);
  });
}

float square_sum(const float* x, std::int64_t d) {
  Vector sums[2] = {};
  std::int64_t i = 0;
  for (; i + 2 * vector_width <= d; i += 2 * vector_width)
    for (std::int64_t half = 0; half < 2; ++half) {
      const Vector values = load(x + i + half * vector_width);
      sums[half] += values * values;
    }
  float sum = sum_of(sums[0] + sums[1]);
  for (; i < d; ++i) sum += x[i] * x[i];
  return sum;
}

float silu(float x) {
  return x / (1 + std::exp(-x));
}

}  // namespace

void rms_norm(const float* x, const float* gain, float* y, std::int64_t rows, std::int64_t d, float eps) {
  in_parts(rows, d, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const float* from = x + row * d;
      float* to = y + row * d;
      const float inverse = 1 / std::sqrt(square_sum(from, d) / static_cast<float>(d) + eps);
      for (std::int64_t i = 0; i < d; ++i) to[i] = from[i] * inverse * (gain == nullptr ? 1.0F : gain[i]);
    }
  });
}

void rotate(const HeadRows& x, std::int64_t b, std::int64_t t, std::int64_t heads, std::int64_t d, const float* table,
            std::int64_t pairs, bool halves, float* y) {
  const std::int64_t second = halves ? pairs : 1, step = halves ? 1 : 2;  // places of a pair's dimensions
  in_parts(b * t, heads * d, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t token = first; token < last; ++token) {
      const float* angles = table + token % t * pairs * 2;
      for (std::int64_t head = 0; head < heads; ++head) {
        const float* from = x.at(token / t, token % t, head);
        float* to = y + (token * heads + head) * d;
        for (std::int64_t i = 0; i < pairs; ++i) {
          const float real = from[i * step], imaginary = from[i * step + second];
          const float cos = angles[2 * i], sin = angles[2 * i + 1];
          to[i * step] = real * cos - imaginary * sin;
          to[i * step + second] = real * sin + imaginary * cos;
        }
        for (std::int64_t i = 2 * pairs; i < d; ++i) to[i] = from[i];
      }
    }
  });
}

void silu_product(float* gate, const float* up, std::int64_t count) {
  in_parts(count, 4, [&](std::int64_t first, std::int64_t last) {
    std::int64_t i = first;
    for (; i + vector_width <= last; i += vector_width) {
      const Vector x = load(gate + i);
      Vector negative = x < -87.0F ? Vector{} + 87.0F : Vector{} - x;
      negative = negative < -87.0F ? Vector{} - 87.0F : negative;
      store(gate + i, x / (1.0F + exp_bounded(negative)) * load(up + i));
    }
    for (; i < last; ++i) gate[i] = silu(gate[i]) * up[i];
  });
}

}  // namespace headscope::cpu
