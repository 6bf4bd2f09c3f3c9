// Attention on texts, as `inspect` writes it: attention.parquet, tokens.parquet and examples.parquet.
#pragma once

#include <filesystem>
#include <vector>

#include "page/report_data.h"

namespace headscope {

// Nothing where the tables are not there. Throws Error(Fault::input) naming the table and the row that makes no sense.
AttentionData read_attention(const std::filesystem::path& folder);
std::vector<AttentionExample> read_examples(const std::filesystem::path& folder);

// The lower triangle row by row, a byte for each weight: round(255 · √weight).
std::string attention_bytes(const HeadAttention& attention);

}  // namespace headscope
