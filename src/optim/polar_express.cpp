#include "optim/polar_express.h"

#include <array>

namespace headscope {
namespace {

// X <- a X + (b A + c A²) X with A = X Xᵀ. The published coefficients for five steps.
struct Coefficients {
  double a, b, c;
};
constexpr std::array<Coefficients, polar_express_steps> coefficients = {{
    {8.156554524902461, -22.48329292557795, 15.878769915207462},
    {4.042929935166739, -2.808917465908714, 0.5000178451051316},
    {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
    {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
    {2.3465413258596377, -1.7097828382687081, 0.42323551169305323},
}};
// The norm is divided by slightly more than itself, so that rounding cannot push a singular value past 1.
constexpr double norm_margin = 1.01, norm_eps = 1e-7;

}  // namespace

at::Tensor polar_express(const at::Tensor& x) {
  const bool tall = x.size(-2) > x.size(-1);
  const at::ScalarType type = x.is_cuda() ? at::kBFloat16 : x.scalar_type();
  const at::Tensor wide = tall ? x.mT() : x;
  const at::Tensor norm = at::linalg_matrix_norm(wide, "fro", {-2, -1}, /*keepdim=*/true);
  at::Tensor y = (wide / (norm * norm_margin + norm_eps)).to(type).flatten(0, -3);  // [matrices, short, long]
  for (const Coefficients& k : coefficients) {
    const at::Tensor gram = at::bmm(y, y.mT());
    const at::Tensor inner = at::baddbmm(gram, gram, gram, k.b, k.c);
    y = at::baddbmm(y, inner, y, k.a, 1);
  }
  if (tall) y = y.mT();
  return y.view_as(x);
}

}  // namespace headscope
