// Attention on texts, and the examples of each head.
#include <map>

#include "core/json_text.h"
#include "page/index_parts.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

bool keeps_attention(const ReportRun& run, std::int64_t layer, std::int64_t head, const IndexParts& parts) {
  if (!parts.choice.heads.empty()) return parts.choice.heads.contains({layer, head});
  if (parts.detail.all_attention || !run.roles) return parts.detail.all_attention;
  const RolesResult& roles = run.roles->roles;
  const auto place = static_cast<std::size_t>(layer * roles.counts.query_heads + head);
  return place < roles.heads.size() && roles.heads[place].label < roles.definition.roles.size();
}

}  // namespace

ordered_json attention_json(const ReportRun& run, IndexParts& parts) {
  const AttentionData& data = run.attention;
  if (data.heads.empty()) return nullptr;
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> heads;
  std::size_t dropped = 0;
  for (const ShownAttention& one : data.heads)
    if (keeps_attention(run, one.layer, one.head, parts))
      heads.try_emplace({one.layer, one.head}, 0);
    else
      ++dropped;
  if (dropped > 0) parts.attention_dropped = true;
  if (heads.empty()) return nullptr;
  ordered_json texts = ordered_json::array(), names = ordered_json::array(), blocks = ordered_json::array();
  for (const auto& pieces : data.texts) texts.push_back({{"pieces", pieces}});
  std::size_t next = 0;
  for (auto& [head, place] : heads) {
    place = next++;
    names.push_back({head.first, head.second});
  }
  for (std::size_t text = 0; text < data.texts.size(); ++text) blocks.push_back(ordered_json::array_t(heads.size()));
  for (const ShownAttention& one : data.heads)
    if (const auto place = heads.find({one.layer, one.head}); place != heads.end())
      blocks[one.text][place->second] = parts.block(block_text(one.bytes));
  return {{"texts", std::move(texts)}, {"heads", std::move(names)}, {"blocks", std::move(blocks)}};
}

// A block of JSON for each layer.
ordered_json examples_json(const ReportRun& run, IndexParts& parts) {
  if (run.examples.empty()) return nullptr;
  std::map<std::int64_t, ordered_json> layers;
  for (const ShownExample& one : run.examples) {
    if (!parts.choice.heads.empty() && !parts.choice.heads.contains({one.layer, one.head})) continue;
    ordered_json weights = ordered_json::array();
    for (const char byte : one.bytes) weights.push_back(static_cast<unsigned char>(byte));
    layers[one.layer].push_back({{"head", one.head},
                                 {"quantile", rounded_to_float(one.quantile)},
                                 {"strength", rounded_to_float(one.strength)},
                                 {"document", one.document},
                                 {"query", one.query},
                                 {"key", one.key},
                                 {"query_at", one.query_at},
                                 {"key_at", or_null(one.key_at)},
                                 {"pieces", one.pieces},
                                 {"weights", std::move(weights)}});
  }
  ordered_json blocks = ordered_json::object();
  for (const auto& [layer, list] : layers) blocks[std::to_string(layer)] = parts.block(block_text(json_line(list)));
  return {{"blocks", std::move(blocks)}};
}

}  // namespace headscope
