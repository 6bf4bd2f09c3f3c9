// A folder of captured queries and keys: DATA/l{LL}h{HH}{q|k}/data.parquet.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "plasticity/options.h"

namespace headscope {

// A query head and the key head that it reads (grouped-query attention: several query heads share one).
struct HeadId {
  std::int64_t layer = 0, q_head = 0, k_head = 0;
  [[nodiscard]] std::string name() const;  // "l03h05"
  auto operator<=>(const HeadId&) const = default;
};

struct Dataset {
  std::filesystem::path root;
  std::int64_t num_layers = 0, num_q_heads = 0, num_k_heads = 0;
  std::vector<HeadId> heads;              // to analyse, in order of layer and query head
  std::vector<std::string> missing = {};  // folders of query heads that others of their number suggest
  std::string rope = "unknown";  // before or after: where queries and keys were captured, if the folder says it

  [[nodiscard]] std::filesystem::path query_file(const HeadId& head) const;
  [[nodiscard]] std::filesystem::path key_file(const HeadId& head) const;
};

// The heads of a model whose files belong into `root`, whether they are there or not.
Dataset dataset_of_model(const std::filesystem::path& root, std::int64_t layers, std::int64_t q_heads,
                         std::int64_t k_heads, const PlasticityOptions& options);

// `data` is the folder of the command line; empty: dataset_local_root/model_dir. The options give the numbers of layers
// and heads; without them, the heads are those whose query folders are there. `layers` and `heads` of the options then
// choose among them. Throws Error(Fault::input) when the folder is a capture that is not finished.
Dataset open_dataset(const std::filesystem::path& data, const PlasticityOptions& options);

}  // namespace headscope
