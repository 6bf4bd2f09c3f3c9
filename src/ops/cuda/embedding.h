// The gradient of an embedding on a GPU, in a fixed order.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

struct EmbeddingShape {
  std::int64_t tokens = 0;
  std::int64_t d = 0;  // a multiple of 4
  float scale = 1;
  ElementType type = ElementType::f32;  // of the gradients that come in
};

// Floats of scratch memory.
std::int64_t embedding_scratch(const EmbeddingShape& shape);

// Adds scale · dx[i] to the row of token i of `gradient`, float32 [vocabulary, d]. sorted: the tokens in rising order;
// order: where each of them stood (a stable sort). dx: [tokens, d], contiguous, aligned to 16 bytes.
void add_embedding_gradient(const void* dx, const std::int64_t* sorted, const std::int64_t* order, float* gradient,
                            float* scratch, const EmbeddingShape& shape, CUstream_st* stream);

}  // namespace headscope::cuda
