// Reference tensors written by tests/oracle/make_model_oracles.py.
#pragma once

#include <ATen/ATen.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "formats/safetensors.h"

namespace headscope::test {

class TensorOracle {
 public:
  explicit TensorOracle(const std::string& name) : file_(std::filesystem::path(HEADSCOPE_ORACLES) / name) {}

  // float64 or int64, as written.
  [[nodiscard]] at::Tensor get(const std::string& name) const {
    const TensorView& view = file_.get(name);
    at::Tensor tensor = at::empty(view.shape, view.type == TensorType::i64 ? at::kLong : at::kDouble);
    std::memcpy(tensor.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
    return tensor;
  }
  [[nodiscard]] double number(const std::string& name) const { return std::stod(file_.metadata().at(name)); }
  [[nodiscard]] std::int64_t size(const std::string& name) const { return std::stoll(file_.metadata().at(name)); }

 private:
  Safetensors file_;
};

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

}  // namespace headscope::test
