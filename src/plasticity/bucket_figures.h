// Figures of the bucket grid: query bucket x key bucket, and plasticity against their distance.
#pragma once

#include <string_view>
#include <vector>

#include "figures/figure.h"
#include "plasticity/plasticity_summary.h"

namespace headscope {

// Query bucket x key bucket, mean over heads. As in an attention matrix, queries go down and keys to the right. Cells
// that exist without a value are grey with a stroke; up to ten buckets, values are written into the cells.
Figure bucket_heatmap(const std::vector<BucketCell>& cells, std::string_view whose, const Theme& theme);

// A page for each layer, bucket_heatmap_l00 ..., with a panel for each head; one colour scale for all pages.
std::vector<Figure> bucket_heatmap_pages(const std::vector<BucketCell>& cells, std::string_view whose,
                                         const Theme& theme);

// Mean over heads against q_bucket - k_bucket, with the middle half of heads and a line for each layer.
Figure distance_figure(const std::vector<BucketCell>& cells, std::string_view whose, const Theme& theme);

}  // namespace headscope
