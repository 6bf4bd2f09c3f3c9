// The rank that a layer's keys use: seed 004's Key PR.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace headscope {

// k_bthd: keys of any float type. For each key head the participation ratio (Σs)²/Σs² of the singular values of its
// keys [b·t, d], not centred, from the Gram matrix in float64.
std::vector<double> key_participation_ratios(const at::Tensor& k_bthd);

}  // namespace headscope
