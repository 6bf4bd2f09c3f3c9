// The Householder reflection that turns the first axis into a given direction (PLASTICITY step 7).
#pragma once

#include <Eigen/Core>

namespace headscope {

// H = I - 2 v v^T, symmetric and orthogonal, with H e1 = beta / |beta|.
struct Reflection {
  Eigen::VectorXd v;      // unit vector, or zeros for the identity
  bool identity = false;  // |beta| or the distance of its direction from e1 is below 1e-12
};

using RowMajorMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// v = beta/|beta| - e1, normalised.
Reflection reflection_onto(const Eigen::Ref<const Eigen::VectorXd>& beta);

// X <- X H for rows of dimension v.size(), as a rank-one update: O(n d).
void reflect(const Reflection& reflection, Eigen::Ref<Eigen::MatrixXd> x_nd);
void reflect(const Reflection& reflection, Eigen::Ref<RowMajorMatrix> x_nd);

}  // namespace headscope
