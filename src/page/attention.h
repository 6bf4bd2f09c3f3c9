// Attention on texts, as `inspect` writes it: attention.parquet, tokens.parquet and examples.parquet.
#pragma once

#include <filesystem>
#include <vector>

#include "page/report_data.h"

namespace headscope {

// Nothing where the tables are not there. `counts`: the layers and query heads that there can be. Throws
// Error(Fault::input) naming the table, the row that makes no sense, and its value.
AttentionData read_attention(const std::filesystem::path& folder, const HeadCounts& counts);
std::vector<ShownExample> read_examples(const std::filesystem::path& folder, const HeadCounts& counts);

// round(255 · √weight) of each; 0 where it is not a number.
std::string attention_bytes(std::span<const double> weights);

}  // namespace headscope
