// A connection of the ranks by one library. The headers of the libraries are read by one source each.
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "launch/place.h"

namespace headscope {

using C10dBackend = c10::intrusive_ptr<c10d::Backend>;
using C10dStore = c10::intrusive_ptr<c10d::Store>;

C10dBackend connect_gloo(const C10dStore& store, const RankPlace& place, std::chrono::milliseconds timeout);

// Throws Error(Fault::input) in a program without CUDA.
C10dBackend connect_nccl(const C10dStore& store, const RankPlace& place, at::Device device,
                         std::chrono::milliseconds timeout);

}  // namespace headscope
