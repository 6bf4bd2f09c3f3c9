// The products that apply squared ReLU as their last step, against float64 on the CPU.
#include "ops/cuda/fused_products.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "gpu/support.h"
#include "ops/feed_forward_products.h"
#include "support/gradients.h"

namespace headscope {
namespace {

using test::gpu, test::random_tensor, test::relative_error;

// One rounding to bfloat16 is 1.1e-3 in the mean square; the fallback rounds the product, too.
constexpr double product_tolerance = 4e-3;

struct Inputs {
  at::Tensor x_nm, up_fm;              // forward
  at::Tensor d_nm, down_mf, inner_nf;  // backward
};

Inputs inputs(const cuda::ProductShape& s) {
  const auto there = [](const at::Tensor& x) { return x.to(gpu().device, at::kBFloat16); };
  return {there(random_tensor({s.rows, s.depth}, 1)), there(random_tensor({s.columns, s.depth}, 2)),
          there(random_tensor({s.rows, s.depth}, 3)), there(random_tensor({s.depth, s.columns}, 4)),
          there(random_tensor({s.rows, s.columns}, 5).relu_().square_())};
}

at::Tensor exact(const at::Tensor& x) {
  return x.to(at::kCPU, at::kDouble);
}
at::Tensor exact_forward(const Inputs& in) {
  return at::mm(exact(in.x_nm), exact(in.up_fm).t()).relu_().square_();
}
at::Tensor exact_backward(const Inputs& in) {
  return at::mm(exact(in.d_nm), exact(in.down_mf)) * exact(in.inner_nf).sqrt() * 2;
}

bool has_kernels() {
  return cuda::supports_fused_products({128, 128, 64});
}

at::Tensor forward(const Inputs& in, const cuda::ProductShape& s, int swizzle) {
  at::Tensor out = at::full({s.rows, s.columns}, std::numeric_limits<double>::quiet_NaN(), in.x_nm.options());
  EXPECT_TRUE(cuda::squared_relu_product(in.x_nm.const_data_ptr(), in.up_fm.const_data_ptr(), out.mutable_data_ptr(), s,
                                         swizzle, c10::cuda::getCurrentCUDAStream()));
  return out;
}

at::Tensor backward(const Inputs& in, const cuda::ProductShape& s, int swizzle) {
  at::Tensor out = at::full({s.rows, s.columns}, std::numeric_limits<double>::quiet_NaN(), in.d_nm.options());
  EXPECT_TRUE(cuda::squared_relu_product_backward(in.d_nm.const_data_ptr(), in.down_mf.const_data_ptr(),
                                                  in.inner_nf.const_data_ptr(), out.mutable_data_ptr(), s, swizzle,
                                                  c10::cuda::getCurrentCUDAStream()));
  return out;
}

// More tiles than the GPU has processors, parts of tiles at every border, and less than one tile.
TEST(FusedProducts, AreThoseOfTheCpu) {
  if (!has_kernels()) GTEST_SKIP() << "this GPU has no kernels";
  for (const cuda::ProductShape& s : {cuda::ProductShape{1003, 520, 264},
                                      {1, 8, 8},
                                      {300, 2048, 512},
                                      {5001, 1000, 72},
                                      {257, 8, 1032},
                                      {7, 3000, 40}}) {
    const Inputs in = inputs(s);
    const at::Tensor y = exact_forward(in), dx = exact_backward(in);
    for (const int swizzle : {1, 8}) {
      SCOPED_TRACE(fmt::format("{} x {} x {}, swizzle {}", s.rows, s.columns, s.depth, swizzle));
      EXPECT_LT(relative_error(forward(in, s, swizzle), y), product_tolerance);
      EXPECT_LT(relative_error(backward(in, s, swizzle), dx), product_tolerance);
    }
  }
}

// Also the shapes and tensors that the kernels do not take: odd sizes, slices, pointers off the 16 bytes, float32.
TEST(FusedProducts, FallBackWhereThereIsNoKernel) {
  for (const cuda::ProductShape& s : {cuda::ProductShape{1003, 520, 264}, {1003, 516, 264}, {77, 520, 33}, {5, 3, 1}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", s.rows, s.columns, s.depth));
    const Inputs in = inputs(s);
    EXPECT_LT(relative_error(squared_relu_product(in.x_nm, in.up_fm), exact_forward(in)), product_tolerance);
    EXPECT_LT(relative_error(squared_relu_product_backward(in.d_nm, in.down_mf, in.inner_nf), exact_backward(in)),
              product_tolerance);
  }
  EXPECT_FALSE(cuda::supports_fused_products({1003, 516, 264}));
  EXPECT_FALSE(cuda::supports_fused_products({77, 520, 33}));

  const Inputs in = inputs({100, 64, 48});
  const auto shifted = [](const at::Tensor& x) {
    const at::Tensor room = at::empty({x.numel() + 1}, x.options());
    return room.narrow(0, 1, x.numel()).view(x.sizes()).copy_(x);
  };
  const auto sliced = [](const at::Tensor& x) { return at::cat({x, x}, 1).narrow(1, 0, x.size(1)); };
  const auto as_float = [](const at::Tensor& x) { return x.to(at::kFloat); };
  for (const std::function<at::Tensor(const at::Tensor&)>& change :
       {std::function<at::Tensor(const at::Tensor&)>(shifted), {sliced}, {as_float}}) {
    EXPECT_LT(relative_error(squared_relu_product(change(in.x_nm), change(in.up_fm)), exact_forward(in)),
              product_tolerance);
    EXPECT_LT(relative_error(squared_relu_product_backward(change(in.d_nm), change(in.down_mf), change(in.inner_nf)),
                             exact_backward(in)),
              product_tolerance);
  }
}

TEST(FusedProducts, NoRowsGiveNoRows) {
  const Inputs in = inputs({0, 64, 48});
  EXPECT_EQ(squared_relu_product(in.x_nm, in.up_fm).sizes(), (at::IntArrayRef{0, 64}));
  EXPECT_EQ(squared_relu_product_backward(in.d_nm, in.down_mf, in.inner_nf).sizes(), (at::IntArrayRef{0, 64}));
}

TEST(FusedProducts, NanOfARowStaysInThatRow) {
  if (!has_kernels()) GTEST_SKIP() << "this GPU has no kernels";
  const cuda::ProductShape s{1003, 520, 264};
  Inputs in = inputs(s);
  const std::int64_t row = 700;
  in.x_nm[row][3].fill_(std::numeric_limits<double>::quiet_NaN());
  in.d_nm[row][200].fill_(std::numeric_limits<double>::quiet_NaN());
  for (const at::Tensor& out : {forward(in, s, 1), backward(in, s, 1)}) {
    const at::Tensor nan_n = out.isnan().sum(1).cpu();
    EXPECT_EQ(nan_n[row].item<std::int64_t>(), s.columns);
    EXPECT_EQ(nan_n.sum().item<std::int64_t>(), s.columns);
  }
}

TEST(FusedProducts, GiveTheSameInAGraph) {
  if (!has_kernels()) GTEST_SKIP() << "this GPU has no kernels";
  const Inputs in = inputs({1003, 520, 264});
  const at::Tensor y = squared_relu_product(in.x_nm, in.up_fm);
  const at::Tensor dx = squared_relu_product_backward(in.d_nm, in.down_mf, in.inner_nf);
  const c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  at::Tensor graph_y, graph_dx;
  at::cuda::CUDAGraph graph;
  {
    const c10::cuda::CUDAStreamGuard guard(stream);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    graph.capture_begin();
    graph_y = squared_relu_product(in.x_nm, in.up_fm);
    graph_dx = squared_relu_product_backward(in.d_nm, in.down_mf, in.inner_nf);
    graph.capture_end();
    graph.replay();
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }
  EXPECT_TRUE(graph_y.equal(y));
  EXPECT_TRUE(graph_dx.equal(dx));
}

}  // namespace
}  // namespace headscope
