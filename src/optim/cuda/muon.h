// What Muon does on a GPU before and after the products of matrices.
#pragma once

#include <cstdint>

#include "optim/cuda/update.h"

namespace headscope::cuda {

constexpr int muon_chunk = 8192;

// A part of one matrix, at most muon_chunk elements. Gradient, momentum and what is to be orthogonalised have the same
// order in memory: `begin` is the place in each of them.
struct MomentumChunk {
  std::int64_t begin;
  int count;
  int matrix;  // of the batch
};

// momentum <- lerp(momentum, g, 1 - mu) and x <- lerp(g, momentum, mu), g the clipped gradient. x:
// bfloat16. squares: float64 [chunks], Σ x² of each chunk. Nothing happens unless control->sound.
void momentum_step(const MomentumChunk* chunks, std::int64_t count, const float* gradient, float* momentum, void* x,
                   double* squares, double mu, const Control* control, CUstream_st* stream);

// scale[m] = 1 / (margin·norm + eps) of matrix m, whose chunks are first_chunk[m] … first_chunk[m + 1] - 1.
void norm_scales(const double* squares, const std::int32_t* first_chunk, std::int64_t matrices, double margin,
                 double eps, float* scale, CUstream_st* stream);

// scaled <- scale[m]·x of each matrix m, x in bfloat16, scaled in float16.
void scale_matrices(const MomentumChunk* chunks, std::int64_t count, const void* x, const float* scale, void* scaled,
                    CUstream_st* stream);

// A part of one parameter, at most muon_chunk elements.
struct WeightChunk {
  float* weight;
  void* copy;          // bfloat16 of the weight; may be null
  std::int64_t begin;  // in x
  int count;
  float rate;  // learning rate of this matrix
};

// weight <- weight - rate·lr_factor·x, x in float16. Nothing happens unless control->sound.
void weight_step(const WeightChunk* chunks, std::int64_t count, const void* x, const Control* control,
                 CUstream_st* stream);

}  // namespace headscope::cuda
