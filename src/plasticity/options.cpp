#include "plasticity/options.h"

#include <algorithm>
#include <set>

namespace headscope {

std::vector<std::string> load_plasticity_config(const std::filesystem::path& file, PlasticityOptions& options) {
  constexpr std::array<std::string_view, 2> without_effect = {"dataset_cache_dir", "download_max_workers"};
  constexpr std::array<std::string_view, 4> required = {"model_dir", "num_layers", "num_q_heads", "num_k_heads"};

  std::vector<std::string> ignored;
  std::set<std::string, std::less<>> given;
  for (const ConfigEntry& entry : read_yaml(file)) {
    given.insert(entry.key);
    if (std::find(without_effect.begin(), without_effect.end(), entry.key) != without_effect.end())
      ignored.push_back(entry.key);
    else
      apply(options, entry);
  }
  for (const std::string_view key : required)
    if (!given.contains(key)) fail_input("{}: '{}' is missing; it is required in a configuration", file.string(), key);
  return ignored;
}

void validate(const PlasticityOptions& options) {
  const auto at_least = [](std::string_view key, std::int64_t value, std::int64_t least) {
    if (value < least) fail_input("{} is {}; expected at least {}", key, value, least);
  };
  at_least("num_layers", options.num_layers.value_or(1), 1);
  at_least("num_q_heads", options.num_q_heads.value_or(1), 1);
  at_least("num_k_heads", options.num_k_heads.value_or(1), 1);
  at_least("max_tokens_per_head", options.max_tokens_per_head, 1);
  at_least("normality_max_dims", options.normality_max_dims, 1);
  at_least("pairs_per_bucket", options.pairs_per_bucket, 1);
  at_least("bootstrap_replicates", options.bootstrap_replicates, 0);
  at_least("max_workers", options.max_workers.value_or(1), 1);
  if (!(options.p_alpha > 0 && options.p_alpha < 1))
    fail_input("p_alpha is {}; expected between 0 and 1", options.p_alpha);
  for (const auto& [key, file] :
       {std::pair("output_csv", &options.output_csv), std::pair("bucket_csv", &options.bucket_csv),
        std::pair("component_csv", &options.component_csv)})
    if (file->empty()) fail_input("{} is empty; expected a file name", key);
}

}  // namespace headscope
