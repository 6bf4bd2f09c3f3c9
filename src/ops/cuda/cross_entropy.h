// Cross-entropy and its gradient on a GPU, in the memory of the logits.
#pragma once

#include <cstdint>

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// logits: [rows, vocabulary], contiguous; become softmax - one-hot of the target. losses: float32 [rows], -log softmax
// of the target. Targets lie in the vocabulary.
void cross_entropy(void* logits, const std::int64_t* targets, float* losses, std::int64_t rows, std::int64_t vocabulary,
                   ElementType type, CUstream_st* stream);

}  // namespace headscope::cuda
