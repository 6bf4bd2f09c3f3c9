// Adds up partial sums of many arrays on a GPU, in one launch and a fixed order.
#pragma once

#include "ops/cuda/element_type.h"

namespace headscope::cuda {

// In the kernel's arguments, which hold 4 kB.
struct PartialSumsTable {
  static constexpr int most = 128;
  struct Entry {
    const float* parts;  // [count, width]
    float* gradient;     // [width], gets the sum
    int count, width;
  };
  Entry entries[most];
  int count = 0;
  bool adds = true;  // to what is there
};

void add_partial_sums(const PartialSumsTable& table, CUstream_st* stream);

}  // namespace headscope::cuda
