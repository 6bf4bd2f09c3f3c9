#include "optim/polar_express.h"

#include <array>
#include <optional>

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

// out <- y·z, known to be symmetric: the blocks on and below the diagonal. Returns whether it left some out.
bool symmetric_product(const at::Tensor& out, const at::Tensor& y, const at::Tensor& z, std::int64_t blocks) {
  const std::int64_t n = out.size(1);
  if (blocks == 0) blocks = fastest_blocks(out.size(0), n);
  if (n % blocks != 0) blocks = 1;
  const std::int64_t rows = n / blocks;
  for (std::int64_t first = 0; first < n; first += rows) {
    at::Tensor part = out.narrow(1, first, rows).narrow(2, 0, first + rows);
    at::bmm_out(part, y.narrow(1, first, rows), z.narrow(2, 0, first + rows));
  }
  return blocks > 1;
}

// bfloat16 is computed with in float32 and rounded once.
at::Tensor wide(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x;
}

at::Tensor with_both_triangles(const at::Tensor& lower) {
  return lower.tril() + lower.tril(-1).mT();
}

#ifdef HEADSCOPE_CUDA
const float* pointer(const std::optional<at::Tensor>& scale) {
  return scale ? scale->const_data_ptr<float>() : nullptr;
}
#endif

// gram <- scale²·gram, both triangles from the lower one.
void mirror(at::Tensor& gram, const std::optional<at::Tensor>& scale) {
#ifdef HEADSCOPE_CUDA
  if (gram.is_cuda()) {
    cuda::mirror(gram.mutable_data_ptr(), gram.size(0), static_cast<int>(gram.size(1)), pointer(scale),
                 c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return;
  }
#endif
  const at::Tensor both = with_both_triangles(wide(gram));
  gram.copy_(scale ? both * scale->square().view({-1, 1, 1}) : both);
}

// square <- scale·(a·I + b·gram + c·square), both triangles from the lower one of square.
void polynomial(const at::Tensor& gram, at::Tensor& square, const Coefficients& k,
                const std::optional<at::Tensor>& scale) {
#ifdef HEADSCOPE_CUDA
  if (gram.is_cuda()) {
    const cuda::Polynomial values = {static_cast<float>(k.a), static_cast<float>(k.b), static_cast<float>(k.c)};
    cuda::polynomial(gram.const_data_ptr(), square.mutable_data_ptr(), gram.size(0), static_cast<int>(gram.size(1)),
                     values, pointer(scale), c10::cuda::getCurrentCUDAStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return;
  }
#endif
  const at::Tensor identity = at::eye(gram.size(1), wide(gram).options());
  const at::Tensor sum = with_both_triangles(wide(square)) * k.c + wide(gram) * k.b + identity * k.a;
  square.copy_(scale ? sum * scale->view({-1, 1, 1}) : sum);
}

}  // namespace

at::Tensor polar_express(const at::Tensor& x) {
  const bool tall = x.size(-2) > x.size(-1);
  const at::ScalarType type = x.is_cuda() ? at::kBFloat16 : x.scalar_type();
  const at::Tensor short_first = tall ? x.mT() : x;
  const at::Tensor norm = at::linalg_matrix_norm(short_first, "fro", {-2, -1}, /*keepdim=*/true);
  at::Tensor y = (short_first / (norm * norm_margin + norm_eps)).to(type).flatten(0, -3);  // [matrices, short, long]
  for (const Coefficients& k : coefficients) {
    const at::Tensor gram = at::bmm(y, y.mT());
    const at::Tensor inner = at::baddbmm(gram, gram, gram, k.b, k.c);
    y = at::baddbmm(y, inner, y, k.a, 1);
  }
  if (tall) y = y.mT();
  return y.view_as(x);
}

// a·X + P·X would be written as a copy of X and a product that reads it again: a·I is part of P instead. The scale is
// part of the first step: G = s²·X·Xᵀ and X <- s·(a·I + b·G + c·G²)·X.
std::vector<at::Tensor> polar_express(std::vector<at::Tensor> x, std::vector<at::Tensor> spare, const at::Tensor& scale,
                                      std::int64_t blocks) {
  HEADSCOPE_CHECK(!x.empty() && x.size() == spare.size(), "{} groups, {} spare", x.size(), spare.size());
  const std::int64_t n = as_wide(x.front()).size(1), matrices = scale.size(0);
  at::Tensor gram = at::empty({matrices, n, n}, x.front().options()), square = at::empty_like(gram);
  std::optional<at::Tensor> first_scale = scale;
  for (const Coefficients& k : coefficients) {
    std::int64_t first = 0;
    bool partial = false;
    for (const at::Tensor& group : x) {
      const at::Tensor y = as_wide(group);
      partial |= symmetric_product(gram.narrow(0, first, y.size(0)), y, y.mT(), blocks);
      first += y.size(0);
    }
    if (partial || first_scale) mirror(gram, first_scale);
    symmetric_product(square, gram, gram, blocks);
    polynomial(gram, square, k, first_scale);
    first = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const at::Tensor y = as_wide(x[i]);
      at::Tensor next = as_wide(spare[i]);
      at::bmm_out(next, square.narrow(0, first, y.size(0)), y);
      first += y.size(0);
    }
    x.swap(spare);
    first_scale.reset();
  }
  return x;
}

}  // namespace headscope
