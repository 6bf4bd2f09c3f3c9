#include "page/attention.h"

#include <algorithm>
#include <cmath>

namespace headscope {

AttentionData read_attention(const std::filesystem::path& /*folder*/) {
  return {};
}

std::vector<AttentionExample> read_examples(const std::filesystem::path& /*folder*/) {
  return {};
}

std::string attention_bytes(const HeadAttention& attention) {
  std::string bytes;
  for (const auto& row : attention.rows)
    for (const float weight : row)
      bytes +=
          static_cast<char>(static_cast<unsigned char>(std::lround(255 * std::sqrt(std::clamp(weight, 0.0F, 1.0F)))));
  return bytes;
}

}  // namespace headscope
