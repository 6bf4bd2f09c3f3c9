#include "page/attention.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "formats/parquet_table.h"
#include "heads/inspection.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

template <class... Args>
[[noreturn]] void refuse_row(const fs::path& table, std::size_t row, fmt::format_string<Args...> format,
                             Args&&... args) {
  fail_input("{}: row {}: {}; the table is damaged", table.string(), row,
             fmt::format(format, std::forward<Args>(args)...));
}

// The pieces of each text. Texts are numbered from 0, and so are positions.
std::vector<std::vector<std::string>> read_pieces(const fs::path& file) {
  std::vector<std::vector<std::string>> texts;
  std::size_t row = 0;
  scan_parquet(file, {"text", "position", "piece"}, [&](const Table& table) {
    const Integers &text = table.integers("text"), &position = table.integers("position");
    const Texts& piece = table.texts("piece");
    for (std::size_t i = 0; i < table.rows(); ++i, ++row) {
      if (position[i] == 0 && text[i] == std::ssize(texts)) texts.emplace_back();
      if (texts.empty() || text[i] != std::ssize(texts) - 1 || position[i] != std::ssize(texts.back()))
        refuse_row(file, row, "text {}, position {} is not the next one", text[i], position[i]);
      texts.back().push_back(piece[i]);
    }
  });
  return texts;
}

bool is_known_head(std::int64_t layer, std::int64_t head) {
  constexpr std::int64_t most = 1 << 16;
  return layer >= 0 && layer < most && head >= 0 && head < most;
}

}  // namespace

std::string attention_bytes(std::span<const double> weights) {
  std::string bytes;
  bytes.reserve(weights.size());
  for (const double weight : weights) {
    const double shown = std::isfinite(weight) ? std::sqrt(std::clamp(weight, 0.0, 1.0)) : 0;
    bytes += static_cast<char>(static_cast<unsigned char>(std::lround(255 * shown)));
  }
  return bytes;
}

AttentionData read_attention(const fs::path& folder) {
  AttentionData data;
  const fs::path file = folder / attention_name;
  std::error_code error;
  if (!fs::is_regular_file(file, error) || !fs::is_regular_file(folder / tokens_name, error)) return data;
  data.texts = read_pieces(folder / tokens_name);
  std::size_t row = 0;
  std::int64_t next_query = 0;
  scan_parquet(file, {"text", "layer", "head", "query", "weights"}, [&](const Table& table) {
    const Integers &text = table.integers("text"), &layer = table.integers("layer"), &head = table.integers("head"),
                   &query = table.integers("query");
    const Vectors& weights = table.vectors("weights");
    for (std::size_t i = 0; i < table.rows(); ++i, ++row) {
      if (text[i] < 0 || text[i] >= std::ssize(data.texts) || !is_known_head(layer[i], head[i]))
        refuse_row(file, row, "text {}, layer {}, head {}: out of range", text[i], layer[i], head[i]);
      if (query[i] == 0) {
        data.heads.push_back({static_cast<std::size_t>(text[i]), layer[i], head[i], {}});
        next_query = 0;
      }
      const bool goes_on = !data.heads.empty() && data.heads.back().text == static_cast<std::size_t>(text[i]) &&
                           data.heads.back().layer == layer[i] && data.heads.back().head == head[i];
      if (!goes_on || query[i] != next_query++ || query[i] >= std::ssize(data.texts[static_cast<std::size_t>(text[i])]))
        refuse_row(file, row, "query {} of text {}, layer {}, head {} is not the next one", query[i], text[i], layer[i],
                   head[i]);
      if (std::ssize(weights[i]) != query[i] + 1)
        refuse_row(file, row, "{} weights of query {}", weights[i].size(), query[i]);
      data.heads.back().bytes += attention_bytes(weights[i]);
    }
  });
  return data;
}

std::vector<ShownExample> read_examples(const fs::path& folder) {
  std::vector<ShownExample> examples;
  const fs::path file = folder / examples_name;
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return examples;
  const Table table = read_parquet(file);
  const Integers &layer = table.integers("layer"), &head = table.integers("head"),
                 &document = table.integers("document"), &query = table.integers("query"), &key = table.integers("key"),
                 &query_at = table.integers("query_at");
  const Numbers quantile = table.numbers("quantile"), strength = table.numbers("strength"),
                key_at = table.numbers("key_at");  // missing where the key is not among the pieces
  const TextLists& pieces = table.text_lists("pieces");
  const Vectors& weights = table.vectors("weights");
  for (std::size_t i = 0; i < table.rows(); ++i) {
    if (!is_known_head(layer[i], head[i])) refuse_row(file, i, "layer {}, head {}: out of range", layer[i], head[i]);
    ShownExample one{layer[i],
                     head[i],
                     quantile[i],
                     strength[i],
                     document[i],
                     query[i],
                     key[i],
                     query_at[i],
                     {},
                     pieces[i],
                     attention_bytes(weights[i])};
    if (std::isfinite(key_at[i])) one.key_at = static_cast<std::int64_t>(key_at[i]);
    examples.push_back(std::move(one));
  }
  return examples;
}

}  // namespace headscope
