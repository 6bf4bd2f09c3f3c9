// What a set of vectors spans, from the singular values of the matrix that holds them as rows, not centred.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headscope {

// The singular values of X, largest first, from its Gram matrix XᵀX (d·d values, symmetric). Exact to about 1e-8 of the
// largest one, whatever the number of rows.
std::vector<double> singular_values_of_gram(std::span<const double> gram, std::int64_t d);

// (Σs)²/Σs²: seed 004's Key PR. 1 for one direction, d for d equal ones; NaN when all are zero.
double participation_ratio(std::span<const double> singular_values);

}  // namespace headscope
