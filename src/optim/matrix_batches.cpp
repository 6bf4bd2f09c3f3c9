#include "optim/matrix_batches.h"

#include <algorithm>

namespace headscope {
namespace {

// Together they save launches, which small matrices need; large ones need the memory more: 4 bytes for each element.
constexpr std::int64_t most_elements = std::int64_t{1} << 28;

std::int64_t short_side(const MatrixGroup& group) {
  return std::min(group.rows, group.columns);
}

std::vector<MatrixGroup> groups_of(const std::vector<LayerMatrix>& matrices) {
  std::vector<MatrixGroup> groups;
  for (const LayerMatrix& matrix : matrices) {
    const std::int64_t rows = rows_of(matrix), columns = matrix.parts.front().size(1);
    auto group = std::ranges::find_if(
        groups, [&](const MatrixGroup& other) { return other.rows == rows && other.columns == columns; });
    if (group == groups.end()) group = groups.insert(groups.end(), MatrixGroup{{}, rows, columns});
    group->matrices.push_back(matrix);
  }
  return groups;
}

}  // namespace

std::int64_t rows_of(const LayerMatrix& matrix) {
  std::int64_t rows = 0;
  for (const at::Tensor& part : matrix.parts) rows += part.size(0);
  return rows;
}

at::Tensor MatrixGroup::view(const at::Tensor& memory) const {
  return memory.narrow(0, begin, count() * rows * columns).view({count(), rows, columns});
}

std::int64_t MatrixBatch::matrices() const {
  std::int64_t matrices = 0;
  for (const MatrixGroup& group : groups) matrices += group.count();
  return matrices;
}

std::vector<at::Tensor> MatrixBatch::views(const at::Tensor& memory) const {
  std::vector<at::Tensor> views;
  for (const MatrixGroup& group : groups) views.push_back(group.view(memory));
  return views;
}

std::vector<MatrixBatch> matrix_batches(const std::vector<LayerMatrix>& matrices) {
  std::vector<MatrixBatch> batches;
  for (MatrixGroup& group : groups_of(matrices)) {
    const std::int64_t elements = aligned(group.count() * group.rows * group.columns);
    auto batch = std::ranges::find_if(batches, [&](const MatrixBatch& other) {
      return short_side(other.groups.front()) == short_side(group) && other.elements + elements <= most_elements;
    });
    if (batch == batches.end()) batch = batches.insert(batches.end(), MatrixBatch());
    group.begin = batch->elements;
    batch->elements += elements;
    batch->groups.push_back(std::move(group));
  }
  return batches;
}

}  // namespace headscope
