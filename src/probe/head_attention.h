// The attention weights of single heads, as the model uses them, and the places of a text where heads attend most.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "model/decoder.h"
#include "probe/probe.h"

namespace headscope {

struct QueryHead {
  std::int64_t layer = 0, head = 0;
  bool operator==(const QueryHead&) const = default;
};

// For each of the heads the matrix [t, t] of its attention, float32 on the CPU: row i is softmax of the scores of query
// i with keys 0 … i (scale, soft-cap and window as the layer has them), 0 behind them. tokens_t: int64, one sequence.
std::vector<at::Tensor> head_attention(const Decoder& model, const at::Tensor& tokens_t,
                                       std::span<const QueryHead> heads);

// A place where a head attends. The strength of a query i >= 1 is its largest weight on a key from 1 to i: the key at
// position 0 does not count, because many heads rest there, and the query's own key does.
struct AttentionExample {
  QueryHead of;
  double quantile = 0;  // share of the head's queries whose strength is not larger; 1: none is
  double strength = 0;
  std::int64_t sequence = 0;        // over all batches
  std::int64_t query = 0, key = 0;  // positions in the sequence
  std::int64_t window_first = 0;    // position of the first token of the window
  std::vector<float> weights = {};  // of the query on the keys of the window; 0 behind the query
};

inline constexpr std::int64_t example_window = 33;   // tokens: 16 before the query and 16 behind it where there are
inline constexpr std::int64_t example_sample = 512;  // queries of a head that quantiles are read from

// `count` examples of every query head, the strongest first. Two of five are the head's strongest; the others are
// spread evenly over the quantiles of a sample: numpy.random.default_rng(0).choice(queries, 512, replace=False), query
// n being number n % (t-1) + 1 of sequence n / (t-1), the same for all heads. Quantiles of the strongest are exact,
// those of the others have a standard error of 0.022 at most, and none where there are no more queries than the sample
// has. Reads the batches once; a head keeps count + 512 windows, however many batches there are. after_batch is called
// after each. Fewer than `count` where a head has fewer queries. Sequences must have two tokens at least.
std::vector<AttentionExample> find_examples(
    const Decoder& model, const std::vector<Batch>& batches, std::int64_t count,
    const std::function<void()>& after_batch = [] {});

}  // namespace headscope
