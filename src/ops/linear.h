// Products with the matrices of a model.
#pragma once

#include <ATen/ATen.h>

namespace headscope {

// y = x·weightᵀ + bias, in the type of x; without a bias that is undefined. The weight may be a packed one.
at::Tensor apply_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// dw <- dw + factor · dyᵀ·x, for code that takes its gradients itself. dy: [tokens, rows], x: [tokens, columns], of one
// type; dw: [rows, columns], of that type or float32, which sums are in anyway. Unless it `adds`, dw may hold anything
// before.
void add_weight_gradient(at::Tensor& dw, const at::Tensor& dy, const at::Tensor& x, double factor = 1,
                         bool adds = true);

// The weight in an order of oneDNN's, which a CPU multiplies faster with (by a sixth on AMD's processors, where torch's
// own products are MKL's); for passes without gradients, in the type of the weight alone, of about `rows` rows. Where
// torch has no such product, and on a GPU, the weight itself.
at::Tensor packed_weight(const at::Tensor& weight, std::int64_t rows);

}  // namespace headscope
