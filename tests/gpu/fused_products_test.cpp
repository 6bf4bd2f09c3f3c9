// The products that apply squared ReLU as their last step, against float64 on the CPU.
#include "ops/cuda/fused_products.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "gpu/support.h"
#include "ops/feed_forward_products.h"
#include "ops/squared_relu.h"
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
  for (int kind = 0; kind < cuda::product_tile_kinds; ++kind)
    for (const at::Tensor& out : {forward(in, s, {kind, 1}), backward(in, s, {kind, 1})}) {
      SCOPED_TRACE(cuda::product_tile_name(kind));
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

// Microseconds of one call, the mean of 30 after a warm-up.
double microseconds(const std::function<void()>& call) {
  constexpr int warm_up = 10, repetitions = 30;
  const c10::cuda::CUDAStream stream = c10::cuda::getCurrentCUDAStream();
  cudaEvent_t begin = nullptr, end = nullptr;
  EXPECT_EQ(cudaEventCreate(&begin), cudaSuccess);
  EXPECT_EQ(cudaEventCreate(&end), cudaSuccess);
  for (int i = 0; i < warm_up; ++i) call();
  EXPECT_EQ(cudaEventRecord(begin, stream), cudaSuccess);
  for (int i = 0; i < repetitions; ++i) call();
  EXPECT_EQ(cudaEventRecord(end, stream), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float milliseconds = 0;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(begin), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  return milliseconds * 1000.0 / repetitions;
}

// Prints; asserts nothing about speed.
TEST(FusedProducts, DISABLED_Times) {
  if (!has_kernels()) GTEST_SKIP() << "this GPU has no kernels";
  const at::TensorOptions options = at::TensorOptions(gpu().device).dtype(at::kBFloat16);
  for (const cuda::ProductShape& s : {cuda::ProductShape{16384, 2048, 512}, {65536, 2048, 512}, {32768, 8192, 2048}}) {
    const at::Tensor a = at::randn({s.rows, s.depth}, options), up = at::randn({s.columns, s.depth}, options),
                     down = at::randn({s.depth, s.columns}, options);
    const at::Tensor y = at::randn({s.rows, s.columns}, options).relu_().square_();
    at::Tensor out = at::empty_like(y);
    const auto print = [&](const std::string& what, const std::function<void()>& call) {
      const double time = microseconds(call);
      const double operations = 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.columns * s.depth);
      fmt::print("{:>6} x {} x {:<5} {:<58} {:9.1f} us {:7.1f} TFLOP/s\n", s.rows, s.columns, s.depth, what, time,
                 operations / time * 1e-6);
    };
    print("forward   cuBLAS alone", [&] { at::mm_out(out, a, up.t()); });
    print("forward   cuBLAS and kernel", [&] {
      at::mm_out(out, a, up.t());
      squared_relu_forward_(out);
    });
    const auto stream = c10::cuda::getCurrentCUDAStream();
    for (const int swizzle : {1, 8})
      print(fmt::format("forward   fused, swizzle {}", swizzle), [&] {
        cuda::squared_relu_product(a.const_data_ptr(), up.const_data_ptr(), out.mutable_data_ptr(), s, swizzle, stream);
      });
    print("backward  cuBLAS alone", [&] { at::mm_out(out, a, down); });
    print("backward  cuBLAS and kernel", [&] {
      at::mm_out(out, a, down);
      squared_relu_backward_(y, out);
    });
    for (const int swizzle : {1, 8})
      print(fmt::format("backward  fused, swizzle {}", swizzle), [&] {
        cuda::squared_relu_product_backward(a.const_data_ptr(), down.const_data_ptr(), y.const_data_ptr(),
                                            out.mutable_data_ptr(), s, swizzle, stream);
      });
  }
}

}  // namespace
}  // namespace headscope
