// How the matrices of Muon lie in memory where gradients stay: those of one shape one behind the other.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "model/decoder.h"
#include "plan/deal.h"

namespace headscope {

std::int64_t rows_of(const LayerMatrix& matrix);

// Matrices of one shape.
struct MatrixGroup {
  std::vector<LayerMatrix> matrices;
  std::int64_t rows = 0, columns = 0;
  std::int64_t begin = 0;  // elements before it in the memory of its batch

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(matrices.size()); }
  // [matrices, rows, columns]
  [[nodiscard]] at::Tensor view(const at::Tensor& memory) const;
};

// Groups of one short side: polar_express takes them together.
struct MatrixBatch {
  std::vector<MatrixGroup> groups;
  std::int64_t elements = 0;

  [[nodiscard]] std::int64_t matrices() const;
  [[nodiscard]] std::vector<at::Tensor> views(const at::Tensor& memory) const;
};

std::vector<MatrixBatch> matrix_batches(const std::vector<LayerMatrix>& matrices);

}  // namespace headscope
