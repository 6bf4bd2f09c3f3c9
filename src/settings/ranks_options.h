// How the processes that train one model together talk to each other, and how they share an update.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/config.h"
#include "settings/train_options.h"

namespace headscope {

enum class RanksBackend { by_device, nccl, gloo };  // by_device: NCCL on GPUs, Gloo on CPUs
template <>
struct EnumNames<RanksBackend> {
  static constexpr std::array<std::string_view, 3> names = {"auto", "nccl", "gloo"};
};

// How gradients are added. ordered: in the order of the forward steps, the sum of one process bit for bit; traffic for
// each forward step. ring: in an order of the backend's own; traffic once an update.
enum class RanksReduce { by_backend, ordered, ring };  // by_backend: ordered with Gloo, ring with NCCL
template <>
struct EnumNames<RanksReduce> {
  static constexpr std::array<std::string_view, 3> names = {"auto", "ordered", "ring"};
};

struct RanksOptions {
  RanksBackend backend = RanksBackend::by_device;
  RanksReduce reduce = RanksReduce::by_backend;
  double timeout = 300;  // seconds: longer than a probe or a checkpoint of rank 0, during which the others wait

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    constexpr double most = 7 * 24 * 3600;
    visit("ranks.backend", self.backend, "Between ranks: auto (nccl on GPUs, gloo on CPUs), nccl or gloo");
    visit("ranks.reduce", self.reduce,
          "How ranks add gradients: ordered (in the order of forward steps; on CPUs bit for bit as one process), ring "
          "(in "
          "the backend's order; less traffic where a rank makes several forward steps), or auto (ordered "
          "with gloo, ring with nccl)");
    visit("ranks.timeout", self.timeout, "Seconds that a rank waits for the others", NumberRange{1, most});
  }
};

// The change that keeps probes between updates of so many forward steps; empty where none is needed.
std::string probes_between(const TrainOptions& options, std::int64_t accumulation);

// A number of forward steps that so many ranks share and that the sequences of an update can be cut into: the next one
// above the present one, whose batches need no more memory, or else the largest. Nothing where there is none.
std::optional<std::int64_t> shared_accumulation(const TrainOptions& options, std::int64_t ranks);

// Throws Error(Fault::input) where so many ranks cannot share the forward steps of an update evenly. The error names
// the numbers that can, and the batch and accumulation that keep the tokens of an update.
void check_ranks(const TrainOptions& options, std::int64_t ranks, const std::string& said_by = {},
                 bool goes_on = false);

}  // namespace headscope
