#include "ops/attention.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>

#include <limits>

#include "ops/cpu/attention.h"
#include "ops/cpu/elementwise.h"
#include "ops/device.h"
#include "ops/gradients.h"

namespace headscope {
namespace {

at::Tensor heads_before_time(const at::Tensor& x_bthd) {
  return x_bthd.transpose(1, 2);
}

// Which keys the queries from `first` on see: bool [count, keys].
at::Tensor visible_keys(std::int64_t first, std::int64_t count, std::int64_t keys, std::int64_t window,
                        at::Device device) {
  at::Tensor seen = at::ones({count, keys}, at::TensorOptions(device).dtype(at::kBool)).tril_(first);
  return window == 0 ? seen : seen.triu_(first + 1 - window);
}

// The scores of a tile of rows exist at a time.
at::Tensor composed_attention(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd,
                              const Scores& scores) {
  constexpr std::int64_t tile_bytes = 256 << 20;
  const std::int64_t time = q_bthd.size(1), heads = q_bthd.size(2);
  const std::int64_t row_bytes = q_bthd.size(0) * heads * time * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t tile = std::max<std::int64_t>(1, tile_bytes / std::max<std::int64_t>(1, row_bytes));
  const at::Tensor v_bhtd = heads_before_time(v_bthd).repeat_interleave(heads / v_bthd.size(2), 1);
  std::vector<at::Tensor> rows;
  for (std::int64_t first = 0; first < time; first += tile)
    rows.push_back(
        at::matmul(attention_probabilities(q_bthd, k_bthd, scores, first, std::min(tile, time - first)), v_bhtd));
  return heads_before_time(at::cat(rows, 2));
}

// Torch's own; with a mask [queries, keys], or causal.
at::Tensor fused_attention(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd,
                           const std::optional<at::Tensor>& mask, double scale) {
  const std::int64_t group = q_bthd.size(2) / k_bthd.size(2);
  // A GPU has no kernel for grouped queries in float32: torch would make the matrix of all scores.
  const bool repeat = group > 1 && q_bthd.is_cuda() && q_bthd.scalar_type() == at::kFloat;
  const auto of_group = [&](const at::Tensor& x_bthd) {
    return heads_before_time(repeat ? x_bthd.repeat_interleave(group, 2) : x_bthd);
  };
  return heads_before_time(at::scaled_dot_product_attention(
      heads_before_time(q_bthd), of_group(k_bthd), of_group(v_bthd), mask, /*dropout_p=*/0, /*is_causal=*/!mask, scale,
      /*enable_gqa=*/group > 1 && !repeat));
}

// Keys or values for each head of queries: [b, heads, t, d].
at::Tensor repeated(const at::Tensor& x_bthd, std::int64_t heads) {
  const at::Tensor x_bhtd = heads_before_time(x_bthd);
  return heads == x_bthd.size(2) ? x_bhtd : x_bhtd.repeat_interleave(heads / x_bthd.size(2), 1);
}

// The sum over the query heads of a group, [b, t, key heads, d].
at::Tensor summed_over_groups(const at::Tensor& x_bhtd, std::int64_t key_heads) {
  const at::Tensor x_bthd = heads_before_time(x_bhtd);
  return x_bthd.size(2) == key_heads ? x_bthd : x_bthd.unflatten(2, {key_heads, -1}).sum(3);
}

at::Tensor masked_scores(const at::Tensor& q_bthd, const at::Tensor& k_bthd, double scale) {
  const std::int64_t time = q_bthd.size(1);
  const at::Tensor s_bhqk =
      at::matmul(heads_before_time(q_bthd), repeated(k_bthd, q_bthd.size(2)).transpose(-1, -2)) * scale;
  return s_bhqk.masked_fill(visible_keys(0, time, time, 0, q_bthd.device()).logical_not(),
                            -std::numeric_limits<double>::infinity());
}

cpu::HeadRows rows_of(const at::Tensor& x_bthd) {
  return {x_bthd.const_data_ptr<float>(), x_bthd.stride(0), x_bthd.stride(1), x_bthd.stride(2)};
}

// The tiled pass of a CPU, in float32.
at::Tensor tiled_attention(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd,
                           const Scores& scores) {
  const auto in_float = [](const at::Tensor& x) {
    const at::Tensor y = x.to(at::kFloat);
    return y.stride(-1) == 1 ? y : y.contiguous();
  };
  const at::Tensor q = in_float(q_bthd), k = in_float(k_bthd), v = in_float(v_bthd);
  at::Tensor mixed = at::empty({q.size(0), q.size(1), q.size(2), v.size(3)}, q.options());
  cpu::causal_attention({.b = q.size(0),
                         .t = q.size(1),
                         .heads = q.size(2),
                         .key_heads = k.size(2),
                         .d = q.size(3),
                         .d_value = v.size(3),
                         .scale = static_cast<float>(scores.scale),
                         .cap = static_cast<float>(scores.cap),
                         .window = scores.window},
                        rows_of(q), rows_of(k), rows_of(v), mixed.mutable_data_ptr<float>());
  return mixed.to(q_bthd.scalar_type());
}

// Torch's kernels that ask sum in a fixed order while an object lives.
class FixedOrder {
 public:
  explicit FixedOrder(bool wanted)
      : before_(at::globalContext().deterministicAlgorithms()),
        only_warned_(at::globalContext().deterministicAlgorithmsWarnOnly()) {
    if (wanted) at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  }
  ~FixedOrder() { at::globalContext().setDeterministicAlgorithms(before_, only_warned_); }
  FixedOrder(const FixedOrder&) = delete;
  FixedOrder& operator=(const FixedOrder&) = delete;

 private:
  bool before_, only_warned_;
};

AttentionKernels attention_kernels(const at::Tensor& q_bthd, const at::Tensor& k_bthd, bool deterministic) {
  using enum AttentionKernels;
  if (!q_bthd.is_cuda() || q_bthd.scalar_type() != at::kBFloat16) return composed;
  const at::Tensor q = heads_before_time(q_bthd), k = heads_before_time(k_bthd);
  const auto choice = [&](const at::Tensor& key, bool grouped) {
    return static_cast<at::SDPBackend>(
        at::_fused_sdp_choice(q, key, key, std::nullopt, 0, /*is_causal=*/true, std::nullopt, grouped));
  };
  if (!deterministic && choice(k, q.size(1) != k.size(1)) == at::SDPBackend::cudnn_attention) return cudnn;
  // Its heads are those of the queries.
  return q_bthd.size(3) <= 256 && q_bthd.size(3) % 8 == 0 ? flash : composed;
}

}  // namespace

at::Tensor rotary_frequencies(std::int64_t d, double base) {
  return at::pow(base, -(at::arange(0, d, 2, at::kDouble) / static_cast<double>(d)));
}

at::Tensor rotary_table(std::int64_t positions, const at::Tensor& frequencies, double magnitude, at::ScalarType type) {
  const at::Tensor angles = at::outer(at::arange(positions, frequencies.scalar_type()), frequencies).to(at::kDouble);
  return at::polar(at::full_like(angles, magnitude), angles).to(at::toComplexType(type));
}

at::Tensor rotary_table(std::int64_t positions, std::int64_t d, double base, at::ScalarType type) {
  return rotary_table(positions, rotary_frequencies(d, base), /*magnitude=*/1, type);
}

at::Tensor rotate(const at::Tensor& x_bthd, const at::Tensor& table, bool halves) {
  const std::int64_t time = x_bthd.size(1), turning = 2 * table.size(1), staying = x_bthd.size(-1) - turning;
  if (takes_cpu_kernels(x_bthd) && x_bthd.stride(-1) == 1 && table.scalar_type() == at::kComplexFloat &&
      table.is_contiguous()) {
    at::Tensor turned = at::empty(x_bthd.sizes(), x_bthd.options());
    cpu::rotate(rows_of(x_bthd), x_bthd.size(0), time, x_bthd.size(2), x_bthd.size(3),
                at::view_as_real(table).const_data_ptr<float>(), table.size(1), halves,
                turned.mutable_data_ptr<float>());
    return turned;
  }
  if (staying > 0)
    return at::cat({rotate(x_bthd.narrow(-1, 0, turning), table, halves), x_bthd.narrow(-1, turning, staying)}, -1);
  at::Tensor pairs = x_bthd.to(inner_type(x_bthd.scalar_type()));
  pairs = halves ? pairs.unflatten(-1, {2, -1}).transpose(-1, -2).contiguous() : pairs.unflatten(-1, {-1, 2});
  const at::Tensor turned = at::view_as_complex(pairs) * table.narrow(0, 0, time).unsqueeze(1);
  const at::Tensor real = at::view_as_real(turned);
  return (halves ? real.transpose(-1, -2) : real).flatten(-2).to(x_bthd.scalar_type());
}

at::Tensor causal_attention(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd,
                            const Scores& scores) {
  if (q_bthd.is_cpu() && q_bthd.scalar_type() != at::kDouble && !needs_gradients(q_bthd, k_bthd, v_bthd))
    return tiled_attention(q_bthd, k_bthd, v_bthd, scores);
  if (scores.cap != 0) return composed_attention(q_bthd, k_bthd, v_bthd, scores);
  const std::int64_t time = q_bthd.size(1), window = scores.window;
  if (window == 0 || window >= time) return fused_attention(q_bthd, k_bthd, v_bthd, std::nullopt, scores.scale);
  // Some queries at a time, with the keys that one of them sees.
  const std::int64_t tile = std::max<std::int64_t>(window, 1024);
  std::vector<at::Tensor> rows;
  for (std::int64_t first = 0; first < time; first += tile) {
    const std::int64_t count = std::min(tile, time - first), from = std::max<std::int64_t>(0, first + 1 - window);
    const std::int64_t keys = first + count - from;
    rows.push_back(fused_attention(q_bthd.narrow(1, first, count), k_bthd.narrow(1, from, keys),
                                   v_bthd.narrow(1, from, keys),
                                   visible_keys(first - from, count, keys, window, q_bthd.device()), scores.scale));
  }
  return rows.size() == 1 ? rows[0] : at::cat(rows, 1);
}

at::Tensor attention_probabilities(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores,
                                   std::int64_t first, std::int64_t count) {
  const std::int64_t groups = q_bthd.size(2) / k_bthd.size(2);
  const at::Tensor q_bhtd = heads_before_time(q_bthd.narrow(1, first, count));
  const at::Tensor k_bhtd = heads_before_time(k_bthd).repeat_interleave(groups, 1);
  at::Tensor s_bhqk = at::matmul(q_bhtd, k_bhtd.transpose(-1, -2)) * scores.scale;
  if (scores.cap != 0) s_bhqk = at::tanh(s_bhqk / scores.cap) * scores.cap;
  const at::Tensor hidden = visible_keys(first, count, k_bthd.size(1), scores.window, q_bthd.device()).logical_not();
  return at::softmax(s_bhqk.masked_fill(hidden, -std::numeric_limits<double>::infinity()), -1);
}

bool wants_repeated_keys(std::int64_t d, at::Device device, at::ScalarType type, bool deterministic) {
  return device.is_cuda() && type == at::kBFloat16 && (deterministic || d <= 64);
}

Attended attention_forward(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd, double scale,
                           bool deterministic) {
  const AttentionKernels kernels = attention_kernels(q_bthd, k_bthd, deterministic);
  const at::Tensor q = heads_before_time(q_bthd);
  if (kernels == AttentionKernels::cudnn) {
    const auto result =
        at::_scaled_dot_product_cudnn_attention(q, heads_before_time(k_bthd), heads_before_time(v_bthd), std::nullopt,
                                                /*compute_log_sumexp=*/true, 0, /*is_causal=*/true, false, scale);
    return {heads_before_time(std::get<0>(result)),
            std::get<1>(result).flatten(2),
            kernels,
            deterministic,
            {std::get<1>(result), std::get<6>(result), std::get<7>(result)}};
  }
  if (kernels == AttentionKernels::flash) {
    const auto result = at::_scaled_dot_product_flash_attention(
        q, repeated(k_bthd, q_bthd.size(2)), repeated(v_bthd, q_bthd.size(2)), 0, /*is_causal=*/true, false, scale);
    return {heads_before_time(std::get<0>(result)),
            std::get<1>(result),
            kernels,
            deterministic,
            {std::get<6>(result), std::get<7>(result)}};
  }
  const at::Tensor scores = masked_scores(q_bthd, k_bthd, scale);
  return {heads_before_time(at::matmul(at::softmax(scores, -1), repeated(v_bthd, q_bthd.size(2)))),
          at::logsumexp(scores, at::IntArrayRef{-1})};
}

AttentionGradients attention_backward(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const at::Tensor& v_bthd,
                                      const Attended& attended, const at::Tensor& d_mixed_bthd, double scale) {
  const std::int64_t time = q_bthd.size(1), heads = q_bthd.size(2), key_heads = k_bthd.size(2);
  const at::Tensor q = heads_before_time(q_bthd), mixed = heads_before_time(attended.mixed_bthd),
                   d_mixed = heads_before_time(d_mixed_bthd);
  if (attended.kernels == AttentionKernels::cudnn) {
    const auto& saved = attended.of_kernels;
    const auto [dq, dk, dv] = at::_scaled_dot_product_cudnn_attention_backward(
        d_mixed, q, heads_before_time(k_bthd), heads_before_time(v_bthd), mixed, saved[0], saved[1], saved[2],
        /*attn_bias=*/at::Tensor(), at::Tensor(), at::Tensor(), time, time, 0, /*is_causal=*/true, scale);
    return {heads_before_time(dq), heads_before_time(dk), heads_before_time(dv)};
  }
  const at::Tensor k = repeated(k_bthd, heads), v = repeated(v_bthd, heads);
  if (attended.kernels == AttentionKernels::flash) {
    const FixedOrder order(attended.deterministic);
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_backward(
        d_mixed, q, k, v, mixed, attended.log_sum_bht, at::Tensor(), at::Tensor(), time, time, 0, /*is_causal=*/true,
        attended.of_kernels[0], attended.of_kernels[1], scale);
    return {heads_before_time(dq), summed_over_groups(dk, key_heads), summed_over_groups(dv, key_heads)};
  }
  // p = softmax(s): ds = p·(dp - Σ dp·p).
  const at::Tensor p = at::softmax(masked_scores(q_bthd, k_bthd, scale), -1);
  const at::Tensor dp = at::matmul(d_mixed, v.transpose(-1, -2));
  const at::Tensor ds = p * (dp - (dp * p).sum(-1, /*keepdim=*/true)) * scale;
  return {heads_before_time(at::matmul(ds, k)), summed_over_groups(at::matmul(ds.transpose(-1, -2), q), key_heads),
          summed_over_groups(at::matmul(p.transpose(-1, -2), d_mixed), key_heads)};
}

}  // namespace headscope
