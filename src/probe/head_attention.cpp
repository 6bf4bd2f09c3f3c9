#include "probe/head_attention.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <unordered_set>

#include "core/random.h"
#include "ops/attention.h"

namespace headscope {
namespace {

constexpr std::int64_t tile_rows = 256;  // of one sequence, all heads: 9 MB for 9 heads and 1024 keys

// A query of a head.
struct Attending {
  float strength = 0;
  std::int64_t place = 0;  // sequence · (t-1) + query - 1
  std::int64_t key = 0;
  std::vector<float> weights = {};
};

// Stronger; of equals the one that comes first.
bool comes_before(const Attending& a, const Attending& b) {
  return a.strength != b.strength ? a.strength > b.strength : a.place < b.place;
}

struct HeadRecord {
  std::vector<Attending> strongest;  // a heap with the weakest on top
  std::vector<Attending> sampled;    // in order of the places
};

class ExampleFinder {
 public:
  ExampleFinder(const Decoder& model, std::int64_t sequences, std::int64_t time, std::int64_t count)
      : time_(time),
        places_(sequences * (time - 1)),
        n_strongest_(std::max<std::int64_t>(1, count * 2 / 5)),
        n_spread_(count - n_strongest_),
        heads_(model.config.heads),
        records_(static_cast<std::size_t>(model.config.layers * model.config.heads)) {
    const std::vector<std::int64_t> chosen = NumpyGenerator(0).choice(places_, std::min(places_, example_sample));
    sampled_.insert(chosen.begin(), chosen.end());
  }

  // All sequences of a batch in one layer; `first` is the number of its first sequence.
  void observe(std::int64_t layer, const HeadVectors& vectors, std::int64_t first) {
    for (std::int64_t b = 0; b < vectors.q_rotated_bthd.size(0); ++b) {
      const at::Tensor q = vectors.q_rotated_bthd.narrow(0, b, 1), k = vectors.k_rotated_bthd.narrow(0, b, 1);
      for (std::int64_t row = 0; row < time_; row += tile_rows) {
        const std::int64_t rows = std::min(tile_rows, time_ - row);
        const at::Tensor weights_hqk =
            attention_probabilities(q, k, vectors.scores, row, rows)[0].to(at::kCPU, at::kFloat).contiguous();
        const float* values = weights_hqk.const_data_ptr<float>();
        for (std::int64_t head = 0; head < heads_; ++head)
          for (std::int64_t i = 0; i < rows; ++i, values += time_)
            if (row + i > 0) add(record(layer, head), first + b, row + i, values);
      }
    }
  }

  [[nodiscard]] std::vector<AttentionExample> examples(std::int64_t layers) {
    std::vector<AttentionExample> all;
    for (std::int64_t layer = 0; layer < layers; ++layer)
      for (std::int64_t head = 0; head < heads_; ++head) {
        const std::vector<AttentionExample> some = of_head({layer, head});
        all.insert(all.end(), some.begin(), some.end());
      }
    return all;
  }

 private:
  HeadRecord& record(std::int64_t layer, std::int64_t head) {
    return records_[static_cast<std::size_t>(layer * heads_ + head)];
  }

  [[nodiscard]] std::int64_t window_first(std::int64_t query) const {
    return std::clamp<std::int64_t>(query - example_window / 2, 0, std::max<std::int64_t>(0, time_ - example_window));
  }

  // `row`: the weights of the query on all keys of its sequence.
  void add(HeadRecord& head, std::int64_t sequence, std::int64_t query, const float* row) {
    const float* best = std::max_element(row + 1, row + query + 1);
    Attending now{*best, sequence * (time_ - 1) + query - 1, best - row};
    const bool is_sampled = sampled_.contains(now.place);
    const bool has_room = std::ssize(head.strongest) < n_strongest_;
    const bool is_strong = has_room || comes_before(now, head.strongest.front());
    if (!is_sampled && !is_strong) return;
    const float* window = row + window_first(query);
    now.weights.assign(window, window + std::min(example_window, time_));
    if (is_sampled) head.sampled.push_back(now);
    if (!is_strong) return;
    if (!has_room) {
      std::ranges::pop_heap(head.strongest, comes_before);
      head.strongest.pop_back();
    }
    head.strongest.push_back(std::move(now));
    std::ranges::push_heap(head.strongest, comes_before);
  }

  [[nodiscard]] AttentionExample example(const QueryHead& of, const Attending& one, double quantile) const {
    const std::int64_t query = one.place % (time_ - 1) + 1;
    return {of, quantile, one.strength, one.place / (time_ - 1), query, one.key, window_first(query), one.weights};
  }

  // The share of the queries, sorted by strength, that are not stronger than this one.
  static double quantile_in(const std::vector<Attending>& sorted, const Attending& one, std::int64_t queries) {
    const auto weaker =
        std::ranges::partition_point(sorted, [&](const Attending& a) { return a.strength > one.strength; });
    return static_cast<double>(queries - (weaker - sorted.begin())) / static_cast<double>(queries);
  }

  [[nodiscard]] std::vector<AttentionExample> of_head(const QueryHead& of) {
    HeadRecord& head = record(of.layer, of.head);
    std::vector<Attending>&strongest = head.strongest, &sampled = head.sampled;
    std::ranges::sort(strongest, comes_before);
    std::ranges::sort(sampled, comes_before);
    std::vector<AttentionExample> chosen;
    for (const Attending& one : strongest) chosen.push_back(example(of, one, quantile_in(strongest, one, places_)));
    std::vector<const Attending*> others;  // no place comes twice
    for (const Attending& one : sampled)
      if (std::ranges::find(strongest, one.place, &Attending::place) == strongest.end()) others.push_back(&one);
    const std::int64_t n = std::ssize(others), spread = std::min(n_spread_, n);
    for (std::int64_t i = 0; i < spread; ++i) {
      const Attending& one = *others[static_cast<std::size_t>((2 * i + 1) * n / (2 * spread))];
      chosen.push_back(example(of, one, quantile_in(sampled, one, std::ssize(sampled))));
    }
    return chosen;
  }

  const std::int64_t time_, places_;
  const std::int64_t n_strongest_, n_spread_;
  const std::int64_t heads_;
  std::unordered_set<std::int64_t> sampled_;
  std::vector<HeadRecord> records_;  // [layer][head]
};

}  // namespace

std::vector<at::Tensor> head_attention(const Decoder& model, const at::Tensor& tokens_t,
                                       std::span<const QueryHead> heads) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> matrices(heads.size());
  const std::int64_t time = tokens_t.size(0);
  std::int64_t last = 0;
  for (const QueryHead& one : heads) last = std::max(last, one.layer);
  const at::Tensor tokens_bt = tokens_t.unsqueeze(0).to(model.embedding.device());
  observe_heads(model, tokens_bt, at::kFloat, last, [&](std::int64_t layer, const HeadVectors& vectors) {
    if (std::ranges::find(heads, layer, &QueryHead::layer) == heads.end()) return;
    const at::Tensor weights_hqk =
        attention_probabilities(vectors.q_rotated_bthd, vectors.k_rotated_bthd, vectors.scores, 0, time)[0].to(
            at::kCPU, at::kFloat);
    for (std::size_t i = 0; i < heads.size(); ++i)
      if (heads[i].layer == layer) matrices[i] = weights_hqk[heads[i].head].contiguous();
  });
  return matrices;
}

std::vector<AttentionExample> find_examples(const Decoder& model, const std::vector<Batch>& batches, std::int64_t count,
                                            const std::function<void()>& after_batch) {
  const at::NoGradGuard no_gradients;
  std::int64_t sequences = 0;
  for (const Batch& batch : batches) sequences += batch.tokens_bt.size(0);
  ExampleFinder finder(model, sequences, batches.at(0).tokens_bt.size(1), count);
  std::int64_t first = 0;
  for (const Batch& batch : batches) {
    observe_heads(model, batch.tokens_bt, at::kFloat, model.config.layers - 1,
                  [&](std::int64_t layer, const HeadVectors& vectors) { finder.observe(layer, vectors, first); });
    first += batch.tokens_bt.size(0);
    after_batch();
  }
  return finder.examples(model.config.layers);
}

}  // namespace headscope
