// What every kernel is declared with: the types of elements that it takes, and the stream that it is queued on.
#pragma once

struct CUstream_st;

namespace headscope::cuda {

enum class ElementType { f32, bf16 };

}  // namespace headscope::cuda
