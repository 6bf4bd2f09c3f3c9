#include "plasticity/options.h"

#include <algorithm>
#include <set>

#include "core/bounds.h"
#include "plasticity/tables.h"
#include "run/names.h"

namespace headscope {

std::vector<ConfigEntry> read_plasticity_config(const std::filesystem::path& file, std::vector<std::string>& ignored) {
  constexpr std::array<std::string_view, 2> without_effect = {"dataset_cache_dir", "download_max_workers"};
  constexpr std::array<std::string_view, 4> required = {"model_dir", "num_layers", "num_q_heads", "num_k_heads"};

  std::vector<ConfigEntry> entries;
  std::set<std::string, std::less<>> given;
  for (const ConfigEntry& entry : read_yaml(file)) {
    given.insert(entry.key);
    if (std::find(without_effect.begin(), without_effect.end(), entry.key) != without_effect.end())
      ignored.push_back(entry.key);
    else
      entries.push_back(entry);
  }
  for (const std::string_view key : required)
    if (!given.contains(key)) fail_input("{}: '{}' is missing; it is required in a configuration", file.string(), key);
  return entries;
}

void validate(const PlasticityOptions& options) {
  constexpr std::int64_t most_heads_in_all = 10'000'000;  // their list is kept in memory
  check_ranges(options);
  checked_product({{"num_layers", options.num_layers.value_or(1)}, {"num_q_heads", options.num_q_heads.value_or(1)}},
                  most_heads_in_all, "heads");
  std::set<std::string, std::less<>> names = {head_uncertainty_csv, cell_uncertainty_csv, head_replicates_csv,
                                              head_checks_csv};
  for (const auto& [key, file] :
       {std::pair("output_csv", &options.output_csv), std::pair("bucket_csv", &options.bucket_csv),
        std::pair("component_csv", &options.component_csv)}) {
    if (!is_plain_csv_name(*file))
      fail_input("{} is '{}'; expected a plain file name that ends in .csv: it is written into the run folder", key,
                 *file);
    if (!names.insert(*file).second) fail_input("{} is '{}', the name of another table; choose another", key, *file);
  }
}

}  // namespace headscope
