// Bound by tensor cores: 2·rows·columns·depth operations, against 2 bytes per element of a, b and c (and y). The
// products are CUTLASS's for compute capability 9.0: one warp group fetches tiles through TMA, two multiply them with
// wgmma, and each block takes tile after tile. What is ours is the function of the sum in the epilogue.
//
// Compiled for sm_90a only, with HEADSCOPE_SM90A defined (cmake/Torch.cmake); otherwise there are no kernels in here.
#include <cuda_runtime.h>

#include "ops/cuda/device_attribute.h"
#include "ops/cuda/fused_products.h"

#ifdef HEADSCOPE_SM90A
// Only what this architecture needs: gemm_universal_adapter.h and the builder of all products also bring the newer
// architectures, their warnings and their time to compile. The others need the definitions of the first.
#include <cutlass/cutlass.h>

#include <cutlass/cluster_launch.hpp>
#include <cutlass/device_kernel.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/builders/sm90_gmma_builder.inl>
#include <cutlass/gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized.hpp>
#include <cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_pingpong.hpp>
#endif

#include <limits>
#include <type_traits>

namespace headscope::cuda {

#ifdef HEADSCOPE_SM90A
namespace {

using namespace cute;
using cutlass::Array;
using Bf16 = cutlass::bfloat16_t;
using RowMajor = cutlass::layout::RowMajor;
using ColumnMajor = cutlass::layout::ColumnMajor;
namespace fusion = cutlass::epilogue::fusion;
constexpr auto rounding = cutlass::FloatRoundStyle::round_to_nearest;
constexpr int alignment = 8;  // elements in the 16 bytes that TMA asks for

// What the epilogue calls, with fragments; CUTLASS asks for a template with one parameter.
template <class T>
struct SquaredRelu;
template <int n>
struct SquaredRelu<Array<float, n>> {
  CUTLASS_DEVICE Array<float, n> operator()(const Array<float, n>& x) const {
    Array<float, n> y;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < n; ++i) {
      const float positive = x[i] < 0.0f ? 0.0f : x[i];  // NaN stays
      y[i] = positive * positive;
    }
    return y;
  }
};
template <>
struct SquaredRelu<float> {};  // its parameters, of which there are none

template <class T>
struct TimesSlope;
template <int n>
struct TimesSlope<Array<float, n>> {
  CUTLASS_DEVICE Array<float, n> operator()(const Array<float, n>& dy, const Array<float, n>& y) const {
    Array<float, n> dx;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < n; ++i) {
      // One instruction, right to 2^-22; the exact root is a dozen. The result is rounded to 2^-9.
      float root;
      asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(y[i]));
      dx[i] = 2.0f * root * dy[i];
    }
    return dx;
  }
};
template <>
struct TimesSlope<float> {};

using Activated =
    fusion::Sm90EVT<fusion::Sm90Compute<SquaredRelu, Bf16, float, rounding>, fusion::Sm90AccFetch>;
using Sloped = fusion::Sm90EVT<fusion::Sm90Compute<TimesSlope, Bf16, float, rounding>, fusion::Sm90AccFetch,
                               fusion::Sm90SrcFetch<Bf16>>;

// Tiles of 128 x 128, one for each warp group: while one finishes its tile, the other multiplies. The two blocks of a
// cluster share the tile of b. With four parts of 64 x 64, all of y is there when the sums are. On an H200 with sums over
// 512 it is faster than cuBLAS without the activation; with tiles of 128 x 256, where multiplying stops during the
// epilogue, it was slower (docs/gpu.md has the times).
using Tile = Shape<_128, _128, _64>;
using Cluster = Shape<_2, _1, _1>;
using FinishTile = Shape<_64, _64>;

// Source: the type of y, or void. LayoutB: of b as [depth, columns].
template <class Source, class LayoutB, class Function>
struct Product {
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
      FinishTile, float, float, Source, RowMajor, alignment, Bf16, RowMajor, alignment,
      cutlass::epilogue::TmaWarpSpecialized, Function>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Bf16, RowMajor, alignment, Bf16, LayoutB, alignment, float,
      Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      cutlass::gemm::KernelTmaWarpSpecializedPingpong>::CollectiveOp;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue,
                                                      cutlass::gemm::PersistentScheduler>;

  static bool launch(const void* a, const void* b, const void* source, void* out, const ProductShape& shape,
                     int swizzle, int processors, cudaStream_t stream) {
    const int m = static_cast<int>(shape.rows), n = static_cast<int>(shape.columns), k = static_cast<int>(shape.depth);
    typename Kernel::Arguments arguments{};
    arguments.mode = cutlass::gemm::GemmUniversalMode::kGemm;
    arguments.problem_shape = make_shape(m, n, k, 1);
    arguments.mainloop.ptr_A = static_cast<const Bf16*>(a);
    arguments.mainloop.ptr_B = static_cast<const Bf16*>(b);
    arguments.epilogue.ptr_D = static_cast<Bf16*>(out);
    if constexpr (!std::is_void_v<Source>) arguments.epilogue.ptr_C = static_cast<const Bf16*>(source);
    // Strides are (row, column, batch), where b is [columns, depth]; the one that is 1 is part of the type.
    get<0>(arguments.mainloop.dA) = k;
    if constexpr (std::is_same_v<LayoutB, ColumnMajor>)
      get<0>(arguments.mainloop.dB) = k;
    else
      get<1>(arguments.mainloop.dB) = n;
    get<0>(arguments.epilogue.dC) = n;
    get<0>(arguments.epilogue.dD) = n;
    arguments.hw_info.sm_count = processors;
    arguments.scheduler.max_swizzle_size = swizzle;
    if (!Kernel::can_implement(arguments) || Kernel::get_workspace_size(arguments) != 0) return false;

    typename Kernel::Params parameters = Kernel::to_underlying_arguments(arguments, nullptr);
    const void* kernel = reinterpret_cast<const void*>(cutlass::device_kernel<Kernel>);
    constexpr int shared_bytes = Kernel::SharedStorageSize;
    static_assert(shared_bytes <= 227 * 1024, "a block of compute capability 9.0 has no more");
    if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes) != cudaSuccess)
      return false;
    const dim3 cluster(size<0>(Cluster{}), size<1>(Cluster{}), 1);
    void* given[] = {&parameters};
    return cutlass::ClusterLauncher::launch(Kernel::get_grid_shape(parameters), cluster, Kernel::get_block_shape(),
                                            shared_bytes, stream, kernel, given) == cutlass::Status::kSuccess;
  }
};

using Up = Product<void, ColumnMajor, Activated>;
using DownBackward = Product<Bf16, RowMajor, Sloped>;

template <class Operation>
bool launch(const void* a, const void* b, const void* source, void* out, const ProductShape& shape, int swizzle,
            cudaStream_t stream) {
  if (shape.rows == 0 || shape.columns == 0) return true;
  return Operation::launch(a, b, source, out, shape, swizzle, device_attribute(cudaDevAttrMultiProcessorCount), stream);
}

}  // namespace

bool supports_fused_products(const ProductShape& shape) {
  constexpr std::int64_t largest = std::numeric_limits<int>::max();
  return shape.rows <= largest && shape.columns <= largest && shape.depth <= largest && shape.depth > 0 &&
         shape.columns % alignment == 0 && shape.depth % alignment == 0 &&
         is_hopper();
}

bool squared_relu_product(const void* a, const void* b, void* c, const ProductShape& shape, int swizzle,
                          cudaStream_t stream) {
  return launch<Up>(a, b, nullptr, c, shape, swizzle, stream);
}

bool squared_relu_product_backward(const void* a, const void* b, const void* y, void* dx, const ProductShape& shape,
                                   int swizzle, cudaStream_t stream) {
  return launch<DownBackward>(a, b, y, dx, shape, swizzle, stream);
}
#else
bool supports_fused_products(const ProductShape&) {
  return false;
}

bool squared_relu_product(const void*, const void*, void*, const ProductShape&, int, cudaStream_t) {
  return false;
}

bool squared_relu_product_backward(const void*, const void*, const void*, void*, const ProductShape&,
                                   int, cudaStream_t) {
  return false;
}
#endif

}  // namespace headscope::cuda
