// A model whose heads do what they are said to do, because their weights were set by hand.
//
// Layer 0: head 0 a sink, head 1 a previous-token head that also hands on which token that was, head 2 uniform with
// short keys. Layer 1: head 0 an induction head, which looks for keys that follow what the query's token is. All others
// attend uniformly with keys of ordinary length.
#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include "model/decoder.h"
#include "ops/attention.h"

namespace headscope::test {

// Dimensions of the residual stream: 1 for all tokens; 1 for the start token; a code of the token, of the one before.
constexpr std::int64_t constant_dim = 0, start_dim = 1, code_dims = 32, own_code = 2,
                       previous_code = own_code + code_dims;
constexpr std::int64_t start_token = 0;

inline DecoderConfig planted_config() {
  DecoderConfig config;
  config.vocabulary = 512;
  config.d_model = previous_code + code_dims + 2;
  config.layers = 2;
  config.heads = config.kv_heads = 4;
  config.d_k = 64;
  config.d_ff = 8;
  config.qk_norm = false;
  config.rope.base = 1e8;  // the upper half of a head's dimensions hardly turns
  return config;
}

// The rows of a head's queries, keys or values in the merged matrix.
struct HeadMatrices {
  at::Tensor q, k, v, output;
};
inline HeadMatrices matrices_of(const Decoder& model, std::int64_t layer, std::int64_t head) {
  const DecoderConfig& c = model.config;
  const DecoderLayer& weights = model.layers[static_cast<std::size_t>(layer)];
  const auto rows = [&](std::int64_t part) {
    return weights.qkv.weight.narrow(0, (part * c.heads + head) * c.d_k, c.d_k);
  };
  return {rows(0), rows(1), rows(2), weights.output.weight.narrow(1, head * c.d_k, c.d_k)};
}

inline Decoder planted_model() {
  const at::NoGradGuard no_gradients;
  Decoder model = make_decoder(planted_config(), 0);
  for_each_parameter(model, [](const std::string&, ParameterKind, at::Tensor& value) {
    if (value.dim() == 2) value.zero_();
  });
  at::Generator generator = at::detail::createCPUGenerator(1);
  model.embedding.select(1, constant_dim).fill_(1);
  model.embedding[start_token][start_dim].fill_(1);
  model.embedding.narrow(1, own_code, code_dims)
      .copy_(at::randint(0, 2, {model.config.vocabulary, code_dims}, generator) * 2 - 1)
      .div_(std::sqrt(static_cast<double>(code_dims)));
  const std::int64_t d = model.config.d_k, slow = d - 2;  // `slow`, slow + 1: the pair that turns least
  constexpr double size = 8;                              // of ordinary keys
  for (std::int64_t layer = 0; layer < 2; ++layer)
    for (std::int64_t head = 0; head < 4; ++head)  // uniform, until told otherwise
      matrices_of(model, layer, head).k[slow][constant_dim].fill_(layer == 0 && head == 2 ? size / 4 : size);
  // Queries ask for `slow + 1`; only the start token's key has it, and it has nothing else.
  const HeadMatrices sink = matrices_of(model, 0, 0);
  sink.q[slow + 1][constant_dim].fill_(8);
  sink.k[slow + 1][start_dim].fill_(size);
  sink.k[slow][start_dim].fill_(-size);
  // Constant queries and keys; the query is turned back by one position, so that scores are largest one token ago.
  const HeadMatrices previous = matrices_of(model, 0, 1);
  const at::Tensor key = at::full({1, 2, 1, d}, size / std::sqrt(static_cast<double>(d)));
  const at::Tensor turned =
      rotate(key, rotary_table(2, d, model.config.rope.base)).select(1, 1).flatten();  // as at position 1
  previous.k.select(1, constant_dim).copy_(turned);
  previous.q.select(1, constant_dim).copy_(key.select(1, 0).flatten() * 30);
  previous.v.narrow(0, 0, code_dims).narrow(1, own_code, code_dims).copy_(at::eye(code_dims));
  previous.output.narrow(0, previous_code, code_dims).narrow(1, 0, code_dims).copy_(at::eye(code_dims));
  // The query's code against the code that the previous-token head left beside each key.
  const HeadMatrices induction = matrices_of(model, 1, 0);
  induction.k.zero_();
  induction.q.narrow(0, d - code_dims, code_dims).narrow(1, own_code, code_dims).copy_(at::eye(code_dims) * 30);
  induction.k.narrow(0, d - code_dims, code_dims).narrow(1, previous_code, code_dims).copy_(at::eye(code_dims) * size);
  return model;
}

}  // namespace headscope::test
