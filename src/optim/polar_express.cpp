#include "optim/polar_express.h"

#include <array>

#include "core/error.h"

#ifdef HEADSCOPE_CUDA
#include "ops/cuda/inputs.h"
#include "optim/cuda/symmetric.h"
#endif

namespace headscope {
namespace {

// X <- a X + (b A + c A²) X with A = X Xᵀ. The published coefficients for five steps.
struct Coefficients {
  double a, b, c;
};
constexpr std::array<Coefficients, 5> coefficients = {{
    {8.156554524902461, -22.48329292557795, 15.878769915207462},
    {4.042929935166739, -2.808917465908714, 0.5000178451051316},
    {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
    {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
    {2.3465413258596377, -1.7097828382687081, 0.42323551169305323},
}};

// Short side first: a view, which products take and write as it is.
at::Tensor as_wide(const at::Tensor& x) {
  return x.size(1) > x.size(2) ? x.mT() : x;
}

// Blocks of rows of a symmetric product of n x n. k blocks compute (k + 1) / 2k of it, but each is a product of its
// own: the first must have two tiles of 128 x 128 for each of 132 multiprocessors.
std::int64_t fastest_blocks(std::int64_t matrices, std::int64_t n) {
  for (const std::int64_t blocks : {4, 2}) {
    const std::int64_t tiles = n / (128 * blocks);
    if (n % (128 * blocks) == 0 && matrices * tiles * tiles >= 2 * 132) return blocks;
  }
  return 1;
}

// out <- factor·y·z, as matrices are, in memory of any strides.
void multiply(at::Tensor out, const at::Tensor& y, const at::Tensor& z, double factor = 1) {
  at::baddbmm_out(out, out, y, z, /*beta=*/0, factor);
}

// Half and bfloat16 are computed with in float32 and rounded once.
at::Tensor wide(const at::Tensor& x) {
  return x.element_size() == 2 ? x.to(at::kFloat) : x;
}

at::Tensor with_both_triangles(const at::Tensor& lower) {
  return lower.tril() + lower.tril(-1).mT();
}

// Both triangles from the lower one.
void mirror(at::Tensor& symmetric) {
#ifdef HEADSCOPE_CUDA
  if (symmetric.is_cuda()) {
    cuda::mirror(symmetric.mutable_data_ptr(), symmetric.size(0), static_cast<int>(symmetric.size(1)),
                 c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return;
  }
#endif
  symmetric.copy_(with_both_triangles(wide(symmetric)));
}

// out <- factor·y·z, known to be symmetric: the blocks on and below the diagonal. Returns whether it left some out.
bool lower_product(const at::Tensor& out, const at::Tensor& y, const at::Tensor& z, std::int64_t blocks,
                   double factor = 1) {
  const std::int64_t n = out.size(1);
  if (blocks == 0) blocks = fastest_blocks(out.size(0), n);
  if (n % blocks != 0) blocks = 1;
  const std::int64_t rows = n / blocks;
  for (std::int64_t first = 0; first < n; first += rows)
    multiply(out.narrow(1, first, rows).narrow(2, 0, first + rows), y.narrow(1, first, rows),
             z.narrow(2, 0, first + rows), factor);
  return blocks > 1;
}

// Of matrices that commute: polynomials of one matrix.
void symmetric_product(at::Tensor& out, const at::Tensor& y, const at::Tensor& z, std::int64_t blocks) {
  if (lower_product(out, y, z, blocks)) mirror(out);
}

// out <- a·I + b·G + c·G², gram = raised·G.
void polynomial(at::Tensor& out, const at::Tensor& gram, const Coefficients& of_g, std::int64_t blocks) {
  const Coefficients k = {of_g.a, of_g.b / raised, of_g.c / raised};
  lower_product(out, gram, gram, blocks, 1 / raised);
#ifdef HEADSCOPE_CUDA
  if (gram.is_cuda()) {
    const cuda::Polynomial values = {static_cast<float>(k.a), static_cast<float>(k.b), static_cast<float>(k.c)};
    cuda::polynomial(gram.const_data_ptr(), out.mutable_data_ptr(), gram.size(0), static_cast<int>(gram.size(1)),
                     values, c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return;
  }
#endif
  const at::Tensor identity = at::eye(gram.size(1), wide(gram).options());
  out.copy_(with_both_triangles(wide(out)) * k.c + wide(gram) * k.b + identity * k.a);
}

// gram <- X·Xᵀ / raised of every group, one behind the other.
void gram_matrices(at::Tensor& gram, const std::vector<at::Tensor>& x, std::int64_t blocks) {
  bool partial = false;
  std::int64_t first = 0;
  for (const at::Tensor& group : x) {
    const at::Tensor y = as_wide(group);
    partial |= lower_product(gram.narrow(0, first, y.size(0)), y, y.mT(), blocks, 1 / raised);
    first += y.size(0);
  }
  if (partial) mirror(gram);
}

// next <- share·P·X for every group.
void apply(const at::Tensor& p, const std::vector<at::Tensor>& x, const std::vector<at::Tensor>& next, double share) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const at::Tensor result = as_wide(next[i]);
    multiply(result, p.narrow(0, first, result.size(0)), as_wide(x[i]), share);
    first += result.size(0);
  }
}

}  // namespace

at::Tensor with_norm_below_one(const at::Tensor& x) {
  const at::Tensor norm = at::linalg_matrix_norm(x, "fro", {-2, -1}, /*keepdim=*/true);
  return x / (norm * norm_margin + norm_eps);
}

at::Tensor polar_express(const at::Tensor& x) {
  if (x.is_cuda()) {  // as where gradients stay
    const at::Tensor half = (with_norm_below_one(x) * raised).to(at::kHalf).flatten(0, -3);
    return polar_express({half}, {at::empty_like(half)})[0].view_as(x);
  }
  const bool tall = x.size(-2) > x.size(-1);
  at::Tensor y = with_norm_below_one(tall ? x.mT() : x).flatten(0, -3);  // [matrices, short, long]
  for (const Coefficients& k : coefficients) {
    const at::Tensor gram = at::bmm(y, y.mT());
    const at::Tensor inner = at::baddbmm(gram, gram, gram, k.b, k.c);
    y = at::baddbmm(y, inner, y, k.a, 1);
  }
  if (tall) y = y.mT();
  return y.view_as(x);
}

// A step is X <- P·X with P = a·I + b·G + c·G² and G = X·Xᵀ, which it takes to P·G·P: two steps need only one product
// with X on the long side each way, and what is multiplied between is n x n. The first step is taken alone: singular
// values that are small beside the largest would be lost in a P·G·P of half precision, and with three steps at a time
// they are. docs/gpu.md has the errors, beside those of single steps in bfloat16. Nothing overflows: singular values
// are at most 1 before a step and 1.2 behind it, so that no element is above 1.2·raised or the largest a.
std::vector<at::Tensor> polar_express(std::vector<at::Tensor> x, std::vector<at::Tensor> spare, std::int64_t blocks) {
  HEADSCOPE_CHECK(!x.empty() && x.size() == spare.size(), "{} groups, {} spare", x.size(), spare.size());
  HEADSCOPE_CHECK(!x.front().is_cuda() || x.front().scalar_type() == at::kHalf, "float16 on a GPU");
  const std::int64_t n = as_wide(x.front()).size(1);
  std::int64_t matrices = 0;
  for (const at::Tensor& group : x) matrices += group.size(0);
  at::Tensor gram = at::empty({matrices, n, n}, x.front().options()), p = at::empty_like(gram),
             other = at::empty_like(gram);
  gram_matrices(gram, x, blocks);
  polynomial(p, gram, coefficients[0], blocks);
  apply(p, x, spare, 1);
  x.swap(spare);
  for (std::size_t k = 1; k < coefficients.size(); k += 2) {
    gram_matrices(gram, x, blocks);
    polynomial(p, gram, coefficients[k], blocks);
    symmetric_product(other, p, gram, blocks);
    symmetric_product(gram, other, p, blocks);
    polynomial(other, gram, coefficients[k + 1], blocks);
    symmetric_product(gram, other, p, blocks);
    apply(gram, x, spare, k + 2 < coefficients.size() ? 1 : 1 / raised);
    x.swap(spare);
  }
  return x;
}

}  // namespace headscope
