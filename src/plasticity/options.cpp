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

std::vector<std::int64_t> parse_index_list(std::string_view text, std::string_view name) {
  constexpr std::int64_t largest = 100000;  // no model has more heads; a slip such as 0-9999999999 must not fill memory
  std::set<std::int64_t> members;
  const auto refuse = [&] { fail_input("{} '{}': expected numbers and ranges such as 0,4-7", name, text); };
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t dash = part.find('-');
    std::int64_t first = 0, last = 0;
    if (!parse_value(part.substr(0, dash), first)) refuse();
    if (dash == std::string_view::npos)
      last = first;
    else if (!parse_value(part.substr(dash + 1), last))
      refuse();
    if (first < 0 || last < first || last > largest) refuse();
    for (std::int64_t member = first; member <= last; ++member) members.insert(member);
  }
  if (members.empty() || text.ends_with(',')) refuse();
  return {members.begin(), members.end()};
}

}  // namespace headscope
