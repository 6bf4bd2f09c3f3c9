#include "plan/exchange.h"

#include <algorithm>
#include <cmath>

namespace headscope {
namespace {

constexpr double giga = 1e9;

// Ranks of the last node, which may not be full.
std::int64_t fewest_of_a_node(const Cluster& cluster, std::int64_t ranks) {
  return ranks - (cluster.nodes(ranks) - 1) * cluster.gpus_per_node;
}

}  // namespace

// ranks - 1 steps, of which one for each further node leaves a node.
double ring_latency(const Cluster& cluster, std::int64_t ranks) {
  const auto between = static_cast<double>(cluster.nodes(ranks) - 1), steps = static_cast<double>(ranks - 1);
  return (steps - between) * link_latency + between * nic_latency;
}

double ring_seconds(const Cluster& cluster, std::int64_t ranks, double bytes) {
  if (ranks == 1) return 0;
  const double nics = static_cast<double>(fewest_of_a_node(cluster, ranks)) * cluster.nic_gb_s;
  const double bandwidth = cluster.nodes(ranks) == 1 ? cluster.link_gb_s : std::min(cluster.link_gb_s, nics);
  const auto count = static_cast<double>(ranks);
  return (count - 1) / count * bytes / (bandwidth * giga) + ring_latency(cluster, ranks);
}

double all_to_all_seconds(const Cluster& cluster, std::int64_t ranks, double bytes) {
  if (ranks == 1) return 0;
  const auto count = static_cast<double>(ranks);
  const auto beside = static_cast<double>(std::min(ranks, cluster.gpus_per_node) - 1);
  const double inside = beside / count * bytes, outside = (count - 1 - beside) / count * bytes;
  return std::max(inside / (cluster.link_gb_s * giga), outside / (cluster.nic_gb_s * giga)) +
         ring_latency(cluster, ranks);
}

double straggler_factor(const Cluster& cluster, std::int64_t ranks, double loss) {
  const double nodes = static_cast<double>(ranks) / static_cast<double>(cluster.gpus_per_node);
  return 1 + loss * std::log2(std::max(1.0, nodes));
}

}  // namespace headscope
