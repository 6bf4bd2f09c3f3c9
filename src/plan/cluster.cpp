#include "plan/cluster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "core/text.h"

namespace headscope {
namespace {

// Nodes of 8 GPUs with a NIC of 400 Gb/s each. They differ in the memory of a GPU (data sheets).
struct KnownCluster {
  const char* name;
  double memory_gb, memory_tb_s;
};
constexpr KnownCluster h200x8 = {"h200x8", 141, 4.8}, h100x8 = {"h100x8", 80, 3.35};
constexpr std::array known_clusters = {h200x8, h100x8};

bool names_a_file(const std::string& text) {
  std::error_code ignored;
  return text.find('/') != std::string::npos || text.ends_with(".yaml") || text.ends_with(".yml") ||
         std::filesystem::exists(text, ignored);
}

Cluster read_cluster(const std::string& file) {
  Cluster cluster;
  cluster.name = std::filesystem::path(file).stem().string();
  cluster.file = on_one_line(file);
  cluster.memory_tb_s = h100x8.memory_tb_s;  // of the slower one, where the file does not say it
  const std::vector<std::string> known = field_names(cluster);
  for (const ConfigEntry& entry : read_yaml(file)) {
    if (std::ranges::find(known, entry.key) == known.end())
      fail_input("{}: {}", entry.where, unknown_name("key", excerpt(entry.key, 80), known));
    apply(cluster, entry);
    cluster.given.push_back(entry.key);
  }
  if (cluster.given.empty()) fail_input("{}: has no keys of a cluster; known are {}", file, fmt::join(known, ", "));
  cluster.name = on_one_line(excerpt(cluster.name, 80));
  return cluster;
}

}  // namespace

bool Cluster::gives(std::string_view key) const {
  return std::ranges::find(given, key) != given.end();
}

std::string amount_text(double number) {
  return number < 1000 ? fmt::format("{:.6g}", number)
                       : with_separators(static_cast<std::int64_t>(std::llround(number)));
}

Cluster cluster_of(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (const KnownCluster& known : known_clusters) {
    names.emplace_back(known.name);
    if (name_or_file != known.name) continue;
    Cluster cluster;
    cluster.name = known.name;
    cluster.memory_gb = known.memory_gb;
    cluster.memory_tb_s = known.memory_tb_s;
    return cluster;
  }
  if (names_a_file(name_or_file)) return read_cluster(name_or_file);
  fail_input("--cluster: unknown cluster '{}'; known are {}, or name a YAML file", excerpt(name_or_file, 80),
             fmt::join(names, ", "));
}

}  // namespace headscope
