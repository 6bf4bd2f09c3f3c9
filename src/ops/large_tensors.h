// Memory of the large tensors of forward passes on the CPU.
#pragma once

#include <cstddef>

namespace headscope {

// While an object lives, large tensors get pages of their own, and of those that were freed so many bytes are kept for
// tensors of about the same size. In the heap of the C library they would lie between small objects that stay: the
// holes do not fit again, and forward passes with tensors of ten megabytes grow it by half a gigabyte. Results are the
// same. Objects may be nested; tensors may outlive them.
class LargeTensors {
 public:
  static constexpr std::size_t smallest = std::size_t{1} << 20;  // of those that are large
  // A layer frees about that much in a batch of 4096 tokens of a model of 135 million parameters.
  static constexpr std::size_t most_kept = std::size_t{256} << 20;

  LargeTensors();
  ~LargeTensors();
  LargeTensors(const LargeTensors&) = delete;
  LargeTensors& operator=(const LargeTensors&) = delete;

  // Bytes that are kept for later tensors now.
  [[nodiscard]] std::size_t kept() const;
};

}  // namespace headscope
