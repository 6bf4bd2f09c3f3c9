// All measurements of the heads of a layer, and of a model.
#pragma once

#include "heads/metrics.h"
#include "model/decoder.h"
#include "probe/head_values.h"

namespace headscope {

// Measures the heads of every layer during a forward pass, in float32 or as given in float64; sums are float64.
// finish() does the work that would make the pass wait for a GPU.
class HeadMeasurer {
 public:
  explicit HeadMeasurer(const MetricSelection& chosen) : chosen_(chosen) {}

  // For one forward pass, which this object must outlive.
  [[nodiscard]] Hooks hooks() {
    return {.observe = [this](std::int64_t, const HeadVectors& vectors) { observe(vectors); }};
  }
  // The chosen measurements of every layer that was observed. Measurements that need a pass of their own are left out.
  [[nodiscard]] std::vector<HeadValues> finish();

 private:
  void observe(const HeadVectors& vectors);

  const MetricSelection& chosen_;
  std::vector<HeadValues> layers_;
  std::vector<at::Tensor> grams_;  // of each layer's keys, for their spectra
};

// `induction` of every layer: needs a forward pass of its own, over random sequences of at most `longest` tokens that
// repeat themselves (the same for every model with this vocabulary).
std::vector<HeadValues> measure_induction(const Decoder& model, std::int64_t longest);

}  // namespace headscope
