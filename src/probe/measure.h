// All measurements of the heads of a layer, and of a model.
#pragma once

#include "heads/metrics.h"
#include "model/decoder.h"
#include "probe/head_values.h"

namespace headscope {

// Measures the heads of every layer on the way of a forward pass, in float32 or as given in float64; sums are float64.
// What a GPU need not be waited for is left to finish().
class HeadMeasurer {
 public:
  explicit HeadMeasurer(const MetricSelection& chosen) : chosen_(chosen) {}

  // To be called for the layers in order; the object must outlive the pass.
  [[nodiscard]] Hooks hooks() {
    return {.observe = [this](std::int64_t, const HeadVectors& vectors) { observe(vectors); }};
  }
  // The chosen measurements of every layer that was observed. Those that need a pass of their own are not among them.
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
