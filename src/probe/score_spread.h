// How far the scores of a query spread over its keys.
#pragma once

#include "model/decoder.h"

namespace headscope {

// score_std of each query head (docs/measurements.md), float64 on the device of the vectors: after RoPE, with the
// model's factor, before a cap, over all keys of the sequence.
at::Tensor score_std(const HeadVectors& vectors);

}  // namespace headscope
