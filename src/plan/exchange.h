// How long ranks take to exchange gradients and weights: a latency for every step and bytes over bandwidth.
#pragma once

#include "plan/cluster.h"

namespace headscope {

// Seconds of a step of a ring, inside a node and to another one: what NCCL itself reckons with (graph/tuning.cc, ring,
// simple protocol, which large messages take). These are constants by which it chooses an algorithm, not measured
// times; of machines with AMD CPUs it reckons with 6 µs inside a node. NCCL adds 8.4 µs for each operation, which is
// left out here. Of its protocol LL128, which it may take for the small messages of losses and norms, it reckons
// with 1.9 and 4.0 µs.
constexpr double link_latency = 3.4e-6, nic_latency = 14e-6;

// Of a reduce-scatter, or an all-gather, of memory that has so many bytes on every rank, in flat rings over all ranks:
// each rank sends (ranks - 1)/ranks of it in ranks - 1 steps. Between nodes the rings together use every NIC, of the
// node that has fewest ranks.
double ring_seconds(const Cluster& cluster, std::int64_t ranks, double bytes);
// Of its steps alone: what every further operation takes, however little it sends.
double ring_latency(const Cluster& cluster, std::int64_t ranks);

// Of an all-to-all of the same memory: what goes to other nodes takes a GPU's own NIC.
double all_to_all_seconds(const Cluster& cluster, std::int64_t ranks, double bytes);

// By this factor, 1 + loss·log2(nodes), updates take longer on more nodes. 0.7 % for each doubling of them is fitted to
// one published pair (docs/plan.md). The four published pairs give 0.45 to 1.78 %. Nothing in them separates waiting
// for the slowest rank from traffic that is not hidden.
constexpr double loss_per_doubling = 0.007, least_loss_published = 0.0045, most_loss_published = 0.0178;
double straggler_factor(const Cluster& cluster, std::int64_t ranks, double loss = loss_per_doubling);

}  // namespace headscope
