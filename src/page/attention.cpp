#include "page/attention.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

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

// Numbers of heads that the run has.
void check_head(const fs::path& file, std::size_t row, std::int64_t layer, std::int64_t head,
                const HeadCounts& counts) {
  if (layer < 0 || layer >= counts.layers || head < 0 || head >= counts.query_heads)
    refuse_row(file, row, "layer {}, head {}: out of range, there are {} layers of {} query heads", layer, head,
               counts.layers, counts.query_heads);
}

void check_weights(const fs::path& file, std::size_t row, std::span<const double> weights) {
  constexpr double rounding = 1e-3;
  for (const double weight : weights)
    if (!(weight >= -rounding && weight <= 1 + rounding)) refuse_row(file, row, "weight {}: expected 0 to 1", weight);
}

void check_share(const fs::path& file, std::size_t row, const char* name, double value) {
  if (!(value >= 0 && value <= 1)) refuse_row(file, row, "{} {}: expected 0 to 1", name, value);
}

// The rows of one head on one text are all queries of the text, in their order. Every head has every text.
class AttentionRows {
 public:
  AttentionRows(const fs::path& file, AttentionData& data) : file_(file), data_(data) {}

  void add(std::size_t row, std::int64_t text, std::int64_t layer, std::int64_t head, std::int64_t query,
           std::span<const double> weights) {
    if (text < 0 || text >= std::ssize(data_.texts))
      refuse_row(file_, row, "text {}: out of range, {} has {}", text, tokens_name, data_.texts.size());
    const auto number = static_cast<std::size_t>(text);
    if (query == 0) {
      check_whole(row);
      if (!seen_.emplace(number, layer, head).second)
        refuse_row(file_, row, "a second attention of text {}, layer {}, head {}", text, layer, head);
      data_.heads.push_back({number, layer, head, {}});
      next_query_ = 0;
    }
    const bool goes_on = !data_.heads.empty() && data_.heads.back().text == number &&
                         data_.heads.back().layer == layer && data_.heads.back().head == head;
    if (!goes_on || query != next_query_ || query >= length(number))
      refuse_row(file_, row, "query {} of text {}, layer {}, head {} is not the next one", query, text, layer, head);
    ++next_query_;
    if (std::ssize(weights) != query + 1) refuse_row(file_, row, "{} weights of query {}", weights.size(), query);
    check_weights(file_, row, weights);
    data_.heads.back().bytes += attention_bytes(weights);
  }

  void finish(std::size_t rows) {
    check_whole(rows);
    for (const ShownAttention& one : data_.heads)
      for (std::size_t text = 0; text < data_.texts.size(); ++text)
        if (!seen_.contains({text, one.layer, one.head}))
          refuse_row(file_, rows, "is not there, and text {} of layer {}, head {} is missing", text, one.layer,
                     one.head);
  }

 private:
  [[nodiscard]] std::int64_t length(std::size_t text) const { return std::ssize(data_.texts[text]); }

  // The head before is at its end.
  void check_whole(std::size_t row) const {
    if (data_.heads.empty()) return;
    const ShownAttention& last = data_.heads.back();
    if (next_query_ != length(last.text))
      refuse_row(file_, row, "expected query {} of text {}, layer {}, head {}", next_query_, last.text, last.layer,
                 last.head);
  }

  const fs::path& file_;
  AttentionData& data_;
  std::set<std::tuple<std::size_t, std::int64_t, std::int64_t>> seen_;
  std::int64_t next_query_ = 0;
};

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

AttentionData read_attention(const fs::path& folder, const HeadCounts& counts) {
  AttentionData data;
  const fs::path file = folder / attention_name;
  std::error_code error;
  if (!fs::is_regular_file(file, error) || !fs::is_regular_file(folder / tokens_name, error)) return data;
  data.texts = read_pieces(folder / tokens_name);
  std::size_t row = 0;
  AttentionRows rows(file, data);
  scan_parquet(file, {"text", "layer", "head", "query", "weights"}, [&](const Table& table) {
    const Integers &text = table.integers("text"), &layer = table.integers("layer"), &head = table.integers("head"),
                   &query = table.integers("query");
    const Vectors& weights = table.vectors("weights");
    for (std::size_t i = 0; i < table.rows(); ++i, ++row) {
      check_head(file, row, layer[i], head[i], counts);
      rows.add(row, text[i], layer[i], head[i], query[i], weights[i]);
    }
  });
  rows.finish(row);
  return data;
}

std::vector<ShownExample> read_examples(const fs::path& folder, const HeadCounts& counts) {
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
    check_head(file, i, layer[i], head[i], counts);
    check_share(file, i, "quantile", quantile[i]);
    check_share(file, i, "strength", strength[i]);
    const std::int64_t length = std::ssize(pieces[i]);
    if (document[i] < 0 || query[i] < 0 || query[i] > most_steps_or_tokens || key[i] < 0 || key[i] > query[i])
      refuse_row(file, i, "document {}, query {}, key {}: out of range", document[i], query[i], key[i]);
    if (query_at[i] < 0 || query_at[i] >= length)
      refuse_row(file, i, "query_at {}: out of range, there are {} pieces", query_at[i], length);
    const bool is_place =
        key_at[i] >= 0 && key_at[i] < static_cast<double>(length) && key_at[i] == std::trunc(key_at[i]);
    if (!std::isnan(key_at[i]) && !is_place)
      refuse_row(file, i, "key_at {}: out of range, there are {} pieces", key_at[i], length);
    if (std::ssize(weights[i]) != length) refuse_row(file, i, "{} weights of {} pieces", weights[i].size(), length);
    check_weights(file, i, weights[i]);
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
    if (!std::isnan(key_at[i])) one.key_at = static_cast<std::int64_t>(key_at[i]);
    examples.push_back(std::move(one));
  }
  return examples;
}

}  // namespace headscope
