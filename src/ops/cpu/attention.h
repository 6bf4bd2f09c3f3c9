// Causal attention on a CPU without gradients, in tiles: no matrix of all scores exists.
#pragma once

#include <cstdint>

namespace headscope::cpu {

// Where the vectors of a tensor [b, t, heads, d] lie; neighbours of one vector are one apart.
struct HeadRows {
  const float* data = nullptr;
  std::int64_t sequence = 0, token = 0, head = 0;  // distances

  [[nodiscard]] const float* at(std::int64_t b, std::int64_t t, std::int64_t h) const {
    return data + b * sequence + t * token + h * head;
  }
};

struct AttentionShape {
  std::int64_t b = 0, t = 0, heads = 0, key_heads = 0, d = 0, d_value = 0;
  float scale = 1, cap = 0;  // as Scores in ops/attention.h
  std::int64_t window = 0;
};

// Writes [b, t, heads, d_value], contiguous. The result does not depend on the number of threads (torch's).
void causal_attention(const AttentionShape& shape, const HeadRows& q, const HeadRows& k, const HeadRows& v, float* out);

}  // namespace headscope::cpu
