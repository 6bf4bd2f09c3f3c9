// The configuration of an analysis: the keys of its YAML file, and the flags of `headscope plasticity`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/config.h"

namespace headscope {

enum class Variant {
  seed,      // full semantic covariance per query bucket; head value weighted by query-bucket size
  diagonal,  // one diagonal residual variance; plain mean over cells (the public Python program)
};
enum class WindowUnit { buckets, tokens };

template <>
struct EnumNames<Variant> {
  static constexpr std::array<std::string_view, 2> names = {"seed", "diagonal"};
};
template <>
struct EnumNames<WindowUnit> {
  static constexpr std::array<std::string_view, 2> names = {"buckets", "tokens"};
};

struct PlasticityOptions {
  // What to read.
  std::string model_dir;                                             // folder of the model inside dataset_local_root
  std::string dataset_name;                                          // where the data came from; recorded only
  std::string dataset_local_root;                                    // folder that holds model_dir
  std::optional<std::int64_t> num_layers, num_q_heads, num_k_heads;  // found by looking when none is given
  std::string layers;                                                // "0,4-7"; empty: all
  std::string heads;                                                 // query heads, the same
  bool drop_nonfinite = false;                                       // by default a NaN is an error: it hides a bug

  // How to measure. Defaults are those of the source document.
  Variant variant = Variant::seed;
  std::int64_t max_tokens_per_head = 50000;
  std::int64_t normality_max_dims = 64;
  double p_alpha = 0.01;
  std::int64_t pairs_per_bucket = 256;
  WindowUnit window = WindowUnit::buckets;
  std::uint64_t seed = 0;
  std::int64_t bootstrap_replicates = 200;  // a standard error is then known to about 5 %

  bool checks = true;  // a value alone does not say whether to trust it

  // What to write, relative to the run folder.
  std::string output_csv = "head_metrics.csv";
  std::string bucket_csv = "head_bucket_plasticity.csv";
  std::string component_csv = "head_component_weights.csv";

  std::optional<std::int64_t> max_workers;  // all cores

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    constexpr SizeRange per_layer = {1, 100'000, {}};  // as many as a folder's name has digits for
    constexpr std::int64_t most_draws = 1 << 20;       // of a cell, or kept of a head: more are no more exact
    visit("model_dir", self.model_dir, "Folder of the model inside dataset_local_root");
    visit("dataset_name", self.dataset_name, "Where the data came from; recorded, never fetched");
    visit("dataset_local_root", self.dataset_local_root, "Folder that holds model_dir");
    visit("num_layers", self.num_layers, "Layers of the model", per_layer);
    visit("num_q_heads", self.num_q_heads, "Query heads a layer", per_layer);
    visit("num_k_heads", self.num_k_heads, "Key heads a layer", per_layer);
    visit("layers", self.layers, "Layers to analyse, such as 0,4-7 (default: all)");
    visit("heads", self.heads, "Query heads to analyse, such as 0,4-7 (default: all)");
    visit("drop_nonfinite", self.drop_nonfinite, "Leave out vectors that hold NaN or infinity, and count them");
    visit("variant", self.variant, "Definition: seed (full covariance) or diagonal (as the public Python program)");
    visit("max_tokens_per_head", self.max_tokens_per_head, "Sub-sample a file with more rows than this",
          SizeRange{1, 1LL << 40, "vectors"});  // more than any disk holds
    visit("normality_max_dims", self.normality_max_dims, "Semantic components in the Kolmogorov-Smirnov test",
          SizeRange{1, 1 << 20, "components"});
    visit("p_alpha", self.p_alpha, "Significance level of the normality tests", between(0, 1));
    visit("pairs_per_bucket", self.pairs_per_bucket, "Key pairs drawn for a cell", SizeRange{1, most_draws, "pairs"});
    visit("window", self.window, "What sliding_window counts: buckets (as the sources) or tokens");
    visit("seed", self.seed, "Seed of every random choice");
    visit("bootstrap_replicates", self.bootstrap_replicates, "Bootstrap replicates over examples",
          SizeRange{0, most_draws, "replicates"});
    visit("checks", self.checks, "Checks of the Gaussian model, of texts and of positions (head_checks.csv)");
    visit("output_csv", self.output_csv, "Table of heads");
    visit("bucket_csv", self.bucket_csv, "Table of cells (query bucket, key bucket)");
    visit("component_csv", self.component_csv, "Table of component weights");
    visit("max_workers", self.max_workers, "Heads analysed at the same time (default: all cores)",
          SizeRange{1, most_threads, "heads"});
  }
};

// The entries of the file, which has model_dir, num_layers, num_q_heads and num_k_heads, as existing files do. Keys
// that configure a download have no effect here: they go to `ignored`.
std::vector<ConfigEntry> read_plasticity_config(const std::filesystem::path& file, std::vector<std::string>& ignored);

// Throws Error(Fault::input) on values that make no sense.
void validate(const PlasticityOptions& options);

}  // namespace headscope
