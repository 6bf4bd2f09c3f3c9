// All measurements of the heads of a layer, and of a model.
#pragma once

#include "model/decoder.h"
#include "probe/head_values.h"
#include "tracks/metrics.h"

namespace headscope {

// The chosen measurements that follow from queries and keys, in float32 or as given in float64; sums are float64.
HeadValues measure_layer(const HeadVectors& vectors, const MetricSelection& chosen);

// `induction` of every layer: needs a forward pass of its own, over random sequences that repeat themselves (the same
// for every model with this vocabulary).
std::vector<HeadValues> measure_induction(const Decoder& model);

}  // namespace headscope
