// The types of elements that kernels take.
#pragma once

namespace headscope::cuda {

enum class ElementType { f32, bf16 };

}  // namespace headscope::cuda
