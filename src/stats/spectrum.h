// How many directions a set of vectors uses: from the singular values of the matrix with these rows, not centred.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headscope {

// The singular values of X, largest first, from its Gram matrix XᵀX (d·d values, symmetric). Exact to about 1e-8 of the
// largest one, whatever the number of rows.
std::vector<double> singular_values_of_gram(std::span<const double> gram, std::int64_t d);

// Those of the product QKᵀ, largest first, from QᵀQ and KᵀK: at most d of them are not 0. They do not change when the
// rows of K are multiplied by an invertible matrix and those of Q by its inverse transpose. Exact to about 1e-8 of
// ‖Q‖·‖K‖.
std::vector<double> singular_values_of_product(std::span<const double> gram_q, std::span<const double> gram_k,
                                               std::int64_t d);

// Ways to count the directions in use, from 1 (one direction) to d (d equal ones); NaN when all values are zero or one
// is NaN. They do not depend on scale, and effective_rank >= participation_ratio >= eigen_participation_ratio >=
// stable_rank: the Rényi entropies of order 1 and 2 of s, 2 of s², and infinity of s².
double effective_rank(std::span<const double> singular_values);             // exp H(s/Σs): Roy and Vetterli 2007
double participation_ratio(std::span<const double> singular_values);        // (Σs)²/Σs²: seed 004's Key PR
double eigen_participation_ratio(std::span<const double> singular_values);  // (Σs²)²/Σs⁴
double stable_rank(std::span<const double> singular_values);                // Σs²/max s²

}  // namespace headscope
