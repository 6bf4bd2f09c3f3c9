// A model in another type, for exact comparisons.
#pragma once

#include "model/decoder.h"

namespace headscope::test {

// Its parameters are new leaves.
inline Decoder converted(const Decoder& model, at::ScalarType type) {
  Decoder copy = model;
  for_each_parameter(copy, [&](const std::string&, ParameterKind, at::Tensor& value) {
    value = value.detach().to(type, /*non_blocking=*/false, /*copy=*/true).set_requires_grad(value.requires_grad());
  });
  copy.rotary = std::make_shared<Rotary>();
  return copy;
}

}  // namespace headscope::test
