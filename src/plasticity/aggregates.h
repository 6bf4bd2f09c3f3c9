// The aggregations behind the figures of plasticity: tables in, plain values out, no drawing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/missing.h"
#include "formats/table.h"
#include "stats/sample_moments.h"

namespace headscope {

// What `headscope plasticity` writes. Columns as in the CSV files of seed 003, of either variant: the cell value is
// `plasticity` or `ap_bucket`, the component weight `weight` or `component_weight`.
struct PlasticityTables {
  Table heads = Table("heads");            // layer, q_head, ap_overall, ...
  Table cells = Table("cells");            // layer, q_head, q_bucket, k_bucket, plasticity | ap_bucket
  Table components = Table("components");  // layer, q_head, component, weight | component_weight
  std::string title;                       // the model's or run's name; may be empty
  std::optional<Table> uncertainty = {};   // layer, q_head, low, high, ...: the 95 % interval of ap_overall
  std::optional<Table> cell_sizes = {};    // of the rows of `cells`: n_queries, ...
  std::optional<Table> checks = {};        // layer, q_head, ap_empirical, ap_gap, ap_gap_se, ...
};

// One value of one query head, with the ends of its 95 % interval where known.
struct HeadValue {
  std::int64_t layer = 0;
  std::int64_t q_head = 0;
  double value = missing;
  double low = missing;
  double high = missing;
};

// ap_overall of every head of the table, in order of layer and head, with its interval.
std::vector<HeadValue> head_plasticity(const PlasticityTables& tables);

// exp(H(w)), H the entropy in nats of a head's component weights: the number of equally weighted components that would
// be as spread out. 1: one component carries all positional information; d: all carry the same.
std::vector<HeadValue> effective_components(const PlasticityTables& tables);

// Quartiles over the heads of each layer. Layers without a value are left out.
struct LayerSpread : Quartiles {
  std::int64_t layer = 0;
  std::int64_t n_heads = 0;
};
std::vector<LayerSpread> spread_by_layer(const std::vector<HeadValue>& heads);

// A cell of the bucket grid: of one head, or the plain mean over the heads that have a value there.
struct BucketCell {
  std::int64_t layer = 0;   // 0 in a mean over heads
  std::int64_t q_head = 0;  // 0 in a mean over heads
  std::int64_t q_bucket = 0;
  std::int64_t k_bucket = 0;
  double value = missing;
  std::int64_t n_heads = 0;
};
// Where sizes are known, a cell of fewer queries than a twentieth of the largest bucket of the run has no value: so few
// queries make it too small (docs/plasticity.md). The last bucket of a text of 2^k tokens is one position.
std::vector<BucketCell> bucket_cells(const PlasticityTables& tables);

// In order of query and key bucket. Cells that few heads have are left out: fewer than half as many as have the most
// common cell of the same layers. Cells that no head has a value in are kept.
std::vector<BucketCell> mean_over_heads(const std::vector<BucketCell>& cells);

// Plasticity by distance = q_bucket - k_bucket. A head's value at a distance is the plain mean of its cells there; mean
// and quartiles are over heads. Distances that few heads have are left out, as such cells are above.
struct DistanceSummary : Quartiles {
  std::int64_t distance = 0;
  double mean = missing;
  std::int64_t n_heads = 0;
};
struct LayerDistance {
  std::int64_t layer = 0;
  std::int64_t distance = 0;
  double mean = missing;
};
std::vector<DistanceSummary> plasticity_by_distance(const std::vector<BucketCell>& cells);
std::vector<LayerDistance> layer_plasticity_by_distance(const std::vector<BucketCell>& cells);

// The share of positional information in a head's `count` heaviest components, averaged over the heads of a layer.
struct CumulativeShare {
  std::int64_t layer = 0;
  std::int64_t count = 0;
  double share = missing;
};
std::vector<CumulativeShare> cumulative_component_share(const PlasticityTables& tables);

}  // namespace headscope
