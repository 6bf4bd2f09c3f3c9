// The pairs of tiles of attention_sums with the products of Hopper's tensor cores.
#pragma once

#include "probe/cuda/attention_sums.h"

namespace headscope::cuda {

// Fills the scratch memory of attention_sums. False, and nothing is queued, where this GPU or these vectors have no such
// kernel: it is for compute capability 9.0, bfloat16, and heads of 64 or 128 dimensions.
bool pair_sums_on_hopper(const void* q, const void* k, const float* log_sum, const AttentionShape& shape,
                         const AttentionScratch& scratch, CUstream_st* stream);

}  // namespace headscope::cuda
