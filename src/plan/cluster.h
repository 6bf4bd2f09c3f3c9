// Machines with GPUs that a run is planned for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"

namespace headscope {

struct Cluster {
  std::string name = "h200x8";
  std::int64_t gpus_per_node = 8;
  // Both of one GPU, one way. Rings of NCCL inside a node of H100s reach 370 of NVLink's 450 GB/s with messages of
  // gigabytes (NVIDIA/nccl-tests, issue 212); a NIC of 400 Gb/s reaches 46 to 48 of its 50 (issue 290).
  double link_gb_s = 370;              // to another GPU of its node
  double nic_gb_s = 45;                // to other nodes
  std::optional<double> tokens_per_s;  // of one GPU on the model that is planned
  std::optional<double> memory_gb;     // of one GPU, 10^9 bytes
  double memory_tb_s = 4.8;            // bandwidth of a GPU's memory: data sheet of the H200
  double peak_tflops = 989;            // of one GPU: H100 and H200, bfloat16, dense
  // Where it was read, and the keys that were there; empty for a cluster that is known by its name.
  std::string file = {};
  std::vector<std::string> given = {};

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    constexpr NumberRange speed = {1e-3, 1e6}, tokens = {1e-3, 1e12};
    visit("name", self.name, "Of the cluster");
    visit("gpus_per_node", self.gpus_per_node, "GPUs of a machine", SizeRange{1, 1024, "GPUs"});
    visit("link_gb_s", self.link_gb_s, "GB/s of a GPU to another one of its machine", speed);
    visit("nic_gb_s", self.nic_gb_s, "GB/s of a GPU to other machines", speed);
    visit("tokens_per_s", self.tokens_per_s, "Tokens/s of one GPU that trains this model alone", tokens);
    visit("memory_gb", self.memory_gb, "Memory of a GPU in 10^9 bytes", speed);
    visit("memory_tb_s", self.memory_tb_s, "Bandwidth of a GPU's memory in TB/s", NumberRange{1e-3, 1e3});
    visit("peak_tflops", self.peak_tflops, "Peak rate of a GPU in bfloat16", speed);
  }

  [[nodiscard]] bool gives(std::string_view key) const;
  // Whether its GPUs are those that docs/gpu.md measured.
  [[nodiscard]] bool is_measured() const { return name == "h200x8" && file.empty(); }
  [[nodiscard]] std::int64_t nodes(std::int64_t ranks) const { return (ranks + gpus_per_node - 1) / gpus_per_node; }
};

// 12.5, 370, 30,000
std::string amount_text(double number);

// The name of a cluster that is known here (h200x8, h100x8), or a YAML file. Throws Error(Fault::input).
Cluster cluster_of(const std::string& name_or_file);

}  // namespace headscope
