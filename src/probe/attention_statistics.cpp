#include "probe/attention_statistics.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/missing.h"
#include "probe/attention_rows.h"

#ifdef HEADSCOPE_CUDA
#include "probe/cuda/attention_sums.h"
#include "probe/cuda/inputs.h"
#endif

namespace headscope {
namespace {

constexpr std::int64_t seed_tokens = 128;
constexpr std::int64_t tile_bytes = 256 << 20;  // of scores, at once
constexpr double infinity = std::numeric_limits<double>::infinity();

// [b, h, t, d], with the key head of each query head.
at::Tensor heads_first(const at::Tensor& x_bthd) {
  return x_bthd.detach().to(x_bthd.scalar_type() == at::kDouble ? at::kDouble : at::kFloat).transpose(1, 2);
}
at::Tensor keys_of_queries(const at::Tensor& k_bthd, std::int64_t heads) {
  return heads_first(k_bthd).repeat_interleave(heads / k_bthd.size(2), 1);
}

// -p ln p, which is 0 for p = 0.
at::Tensor entropy_terms(const at::Tensor& p) {
  return -at::xlogy(p, p);
}

// Sums over rows of tiles; [h] unless said.
struct TileSums {
  at::Tensor entropy, entropy_norm, sink, previous, self, divergence;
  at::Tensor max_logit;
  at::Tensor received_bht;  // attention that each key gets
};

at::Tensor sum_heads(const at::Tensor& values_bhr) {
  return values_bhr.sum(at::IntArrayRef{0, 2}, /*keepdim=*/false, at::kDouble);
}

// The rows [first, first + rows) of all keys up to the last row.
at::Tensor scores_of(const at::Tensor& q_bhtd, const at::Tensor& k_bhtd, const Scores& scores, std::int64_t first,
                     std::int64_t rows) {
  at::Tensor values =
      at::matmul(q_bhtd.narrow(2, first, rows), k_bhtd.narrow(2, 0, first + rows).mT()).mul_(scores.scale);
  return scores.cap == 0 ? values : values.div_(scores.cap).tanh_().mul_(scores.cap);
}

// True for the keys that these rows do not see: [rows, keys up to the last row].
at::Tensor hidden_keys(const Scores& scores, std::int64_t first, std::int64_t rows, at::Device device) {
  const auto place = at::TensorOptions(device).dtype(at::kLong);
  const at::Tensor ahead_rc =
      at::arange(first + rows, place).unsqueeze(0) - at::arange(first, first + rows, place).unsqueeze(1);
  return scores.window == 0 ? ahead_rc > 0 : at::logical_or(ahead_rc > 0, ahead_rc <= -scores.window);
}

// The rows [first, first + rows) of all sequences and heads.
void add_tile(TileSums& sums, const at::Tensor& q_bhtd, const at::Tensor& k_bhtd, const Scores& rule,
              std::int64_t first, std::int64_t rows) {
  const std::int64_t columns = first + rows, sequences = q_bhtd.size(0);
  const at::Tensor hidden_rc = hidden_keys(rule, first, rows, q_bhtd.device());
  const at::Tensor scores = scores_of(q_bhtd, k_bhtd, rule, first, rows).masked_fill_(hidden_rc, -infinity);
  sums.max_logit = at::maximum(sums.max_logit, scores.amax(at::IntArrayRef{0, 2, 3}).to(at::kDouble));
  const at::Tensor log_p = at::log_softmax(scores, -1), p = log_p.exp();
  const at::Tensor entropy_bhr =
      -(p * log_p.masked_fill(hidden_rc, 0)).sum(at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble);
  sums.received_bht.narrow(2, 0, columns).add_(p.sum(at::IntArrayRef{2}, /*keepdim=*/false, at::kDouble));
  sums.entropy += sum_heads(entropy_bhr);
  sums.self += sum_heads(p.diagonal(first, 2, 3));
  const std::int64_t skip = first == 0 ? 1 : 0;  // the first row has no token before it
  if (rows == skip) return;
  const at::Tensor later_p = p.narrow(2, skip, rows - skip), later_entropy = entropy_bhr.narrow(2, skip, rows - skip);
  const at::Tensor widest_r =
      hidden_rc.narrow(0, skip, rows - skip).logical_not().sum(-1).to(at::kDouble).log();  // of the keys that it sees
  sums.entropy_norm += sum_heads(later_entropy / widest_r);
  sums.sink += sum_heads(later_p.select(-1, 0));
  sums.previous += sum_heads(later_p.diagonal(first + skip - 1, 2, 3));
  const at::Tensor between_hr =
      (entropy_terms(later_p.mean(0)).sum(at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble) - later_entropy.mean(0))
          .clamp_min(0);
  sums.divergence += (between_hr / widest_r.clamp_max(std::log(static_cast<double>(sequences)))).sum(-1);
}

TileSums tile_sums(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores) {
  const at::Tensor q_bhtd = heads_first(q_bthd), k_bhtd = keys_of_queries(k_bthd, q_bthd.size(2));
  const std::int64_t b = q_bhtd.size(0), h = q_bhtd.size(1), t = q_bhtd.size(2);
  const auto place = at::TensorOptions(q_bhtd.device()).dtype(at::kDouble);
  const auto zeros = [&] { return at::zeros({h}, place); };
  TileSums sums{zeros(),
                zeros(),
                zeros(),
                zeros(),
                zeros(),
                zeros(),
                at::full({h}, -infinity, place),
                at::zeros({b, h, t}, place)};
  const std::int64_t tile = std::clamp<std::int64_t>(tile_bytes / (b * h * t * 4), 1, t);
  for (std::int64_t first = 0; first < t; first += tile)
    add_tile(sums, q_bhtd, k_bhtd, scores, first, std::min(tile, t - first));
  return sums;
}

// From sums to means. `rows`: of all sequences; `later`: those after the first of each.
OneHead means_of(const HeadSums& sums, double sequences, double t) {
  const double rows = sequences * t, later = sequences * (t - 1), mean_entropy = sums.entropy / rows;
  const double profile_entropy = sums.profile_entropy / sequences;
  // 1 less the mutual information of query and key over the entropy of keys. Queries that all attend to one key, up to
  // the rounding of float32, are constant.
  const double constancy = profile_entropy > 1e-6 ? std::min(1.0, mean_entropy / profile_entropy) : 1.0;
  return {{"entropy", mean_entropy},
          {"entropy_norm", sums.entropy_norm / later},
          {"max_logit", sums.max_logit},
          {"sink", sums.sink / later},
          {"previous", sums.previous / later},
          {"self", sums.self / rows},
          {"constancy", std::isnan(mean_entropy) ? missing : constancy},
          {"consistency", sequences > 1 ? 1 - sums.divergence / (t - 1) : missing}};
}

HeadValues means_of(const std::vector<HeadSums>& sums, std::int64_t sequences, std::int64_t t) {
  std::vector<OneHead> heads;
  for (const HeadSums& of_head : sums)
    heads.push_back(means_of(of_head, static_cast<double>(sequences), static_cast<double>(t)));
  return by_metric(heads);
}

// The sums of the heads out of those of `parts` of the rows: [parts, heads, 8], in the order of HeadSums.
std::vector<HeadSums> sums_of(const double* s, std::int64_t parts, std::int64_t heads) {
  std::vector<HeadSums> sums(static_cast<std::size_t>(heads));
  for (HeadSums& head : sums) head.max_logit = -infinity;
  for (std::int64_t part = 0; part < parts; ++part)
    for (HeadSums& head : sums) {
      add(head, {s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7]});
      s += 8;
    }
  return sums;
}

bool has_fused(const at::Tensor& q_bthd) {
  return q_bthd.device().is_cpu() && q_bthd.scalar_type() != at::kDouble;
}

at::Tensor plain(const at::Tensor& x_bthd) {
  return x_bthd.detach().to(at::kFloat).contiguous();
}

#ifdef HEADSCOPE_CUDA
bool has_attention_kernel(const at::Tensor& q_bthd, const Scores& scores) {
  return scores.cap == 0 && scores.scale > 0 && cuda::has_kernel_type(q_bthd) && q_bthd.numel() > 0 &&
         q_bthd.size(3) <= 256 &&
         cuda::supports_attention_sums(static_cast<int>(q_bthd.size(3)), cuda::element_type(q_bthd));
}

// What kernels of attention take.
struct AttentionInput {
  at::Tensor q, k;
  cuda::AttentionShape shape;
};

AttentionInput attention_input(const at::Tensor& q_bthd, const at::Tensor& k_bthd, double scale) {
  AttentionInput input{cuda::head_input(q_bthd, 16), cuda::head_input(k_bthd.to(q_bthd.scalar_type()), 16), {}};
  input.shape.b = q_bthd.size(0);
  input.shape.t = q_bthd.size(1);
  input.shape.heads = static_cast<int>(q_bthd.size(2));
  input.shape.key_heads = static_cast<int>(k_bthd.size(2));
  input.shape.d = static_cast<int>(q_bthd.size(3));
  input.shape.scale = static_cast<float>(scale);
  input.shape.q = cuda::strides_of(input.q);
  input.shape.k = cuda::strides_of(input.k);
  input.shape.type = cuda::element_type(q_bthd);
  return input;
}

PendingValues kernel_statistics(const at::Tensor& q_bthd, const at::Tensor& k_bthd, double scale,
                                const at::Tensor& given_log_sum_bht) {
  const c10::cuda::CUDAGuard device(q_bthd.device());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const auto [q, k, shape] = attention_input(q_bthd, k_bthd, scale);
  const std::int64_t tiles = cuda::attention_tiles(shape.t), b = shape.b, h = shape.heads, t = shape.t;
  const auto floats = q.options().dtype(at::kFloat), doubles = q.options().dtype(at::kDouble);
  at::Tensor log_sum_bht;
  if (given_log_sum_bht.defined()) {
    HEADSCOPE_CHECK(given_log_sum_bht.scalar_type() == at::kFloat && given_log_sum_bht.numel() == b * h * t,
                    "{} values for {} rows", given_log_sum_bht.numel(), b * h * t);
    log_sum_bht = given_log_sum_bht.detach().contiguous();
  } else {
    log_sum_bht = at::empty({b, h, t}, floats);
    cuda::attention_log_sums(q.const_data_ptr(), k.const_data_ptr(), shape, log_sum_bht.mutable_data_ptr<float>(),
                             stream);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }
  const at::Tensor received = at::empty({tiles, b, h, t}, floats), rows = at::empty({2, h, tiles, t}, floats);
  const at::Tensor pairs = at::empty({cuda::attention_pairs(t), h, 3}, floats), first = at::empty({b, h}, floats);
  const at::Tensor sums_thv = at::empty({tiles, h, cuda::attention_values}, doubles);
  cuda::attention_sums(q.const_data_ptr(), k.const_data_ptr(), log_sum_bht.const_data_ptr<float>(), shape,
                       {received.mutable_data_ptr<float>(), rows.mutable_data_ptr<float>(),
                        pairs.mutable_data_ptr<float>(), first.mutable_data_ptr<float>()},
                       sums_thv.mutable_data_ptr<double>(), stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {{}, sums_thv, [=](const double* sums) { return means_of(sums_of(sums, tiles, h), b, t); }};
}

PendingValues kernel_seed_entropy(const at::Tensor& q_bthd, const at::Tensor& k_bthd, double scale) {
  static_assert(cuda::seed_rows == seed_tokens);
  const c10::cuda::CUDAGuard device(q_bthd.device());
  const auto [q, k, shape] = attention_input(q_bthd, k_bthd, scale);
  const at::Tensor sums_hb = at::empty({shape.heads, shape.b}, q.options().dtype(at::kDouble));
  cuda::seed_entropies(q.const_data_ptr(), k.const_data_ptr(), shape, sums_hb.mutable_data_ptr<double>(),
                       c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {{}, sums_hb, [b = shape.b, heads = shape.heads, t = std::min(shape.t, seed_tokens)](const double* sums) {
            std::vector<double> means;
            for (int head = 0; head < heads; ++head, sums += b)
              means.push_back(std::accumulate(sums, sums + b, 0.0) / static_cast<double>(b * t));
            return HeadValues{{"entropy_seed", means}};
          }};
}
#endif

}  // namespace

PendingValues begin_attention_statistics(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores,
                                         [[maybe_unused]] const at::Tensor& log_sum_bht) {
#ifdef HEADSCOPE_CUDA
  if (scores.window == 0 && has_attention_kernel(q_bthd, scores))
    return kernel_statistics(q_bthd, k_bthd, scores.scale, log_sum_bht);
#endif
  if (!has_fused(q_bthd)) return begin_attention_statistics_composed(q_bthd, k_bthd, scores);
  return {.known = means_of(causal_row_sums(plain(q_bthd), plain(k_bthd), scores), q_bthd.size(0), q_bthd.size(1))};
}

PendingValues begin_attention_statistics_composed(const at::Tensor& q_bthd, const at::Tensor& k_bthd,
                                                  const Scores& scores) {
  const TileSums sums = tile_sums(q_bthd, k_bthd, scores);
  const at::Tensor profile_bht = sums.received_bht / static_cast<double>(q_bthd.size(1));
  const at::Tensor sums_hv =
      at::stack({sums.entropy, sums.entropy_norm, sums.sink, sums.previous, sums.divergence, sums.self, sums.max_logit,
                 entropy_terms(profile_bht).sum(at::IntArrayRef{0, 2})},
                1);
  return {{}, sums_hv, [h = q_bthd.size(2), b = q_bthd.size(0), t = q_bthd.size(1)](const double* values) {
            return means_of(sums_of(values, 1, h), b, t);
          }};
}

PendingValues begin_seed_entropy(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores) {
#ifdef HEADSCOPE_CUDA
  if (has_attention_kernel(q_bthd, scores)) return kernel_seed_entropy(q_bthd, k_bthd, scores.scale);
#endif
  const std::int64_t t = std::min(q_bthd.size(1), seed_tokens);
  const at::Tensor q = q_bthd.narrow(1, 0, t), k = k_bthd.narrow(1, 0, t);
  if (has_fused(q)) return {.known = {{"entropy_seed", unmasked_entropies(plain(q), plain(k), scores)}}};
  const at::Tensor log_p = at::log_softmax(scores_of(heads_first(q), keys_of_queries(k, q.size(2)), scores, 0, t), -1);
  const at::Tensor entropy_bht = -(log_p.exp() * log_p).sum(at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble);
  return {{}, entropy_bht.mean(at::IntArrayRef{0, 2}), [h = q.size(2)](const double* means) {
            return HeadValues{{"entropy_seed", {means, means + h}}};
          }};
}

HeadValues induction_score(const at::Tensor& q_bthd, const at::Tensor& k_bthd, const Scores& scores) {
  const std::int64_t half = q_bthd.size(1) / 2;
  const at::Tensor q_bhtd = heads_first(q_bthd), k_bhtd = keys_of_queries(k_bthd, q_bthd.size(2));
  const at::Tensor p = at::softmax(scores_of(q_bhtd, k_bhtd, scores, half, half)
                                       .masked_fill_(hidden_keys(scores, half, half, q_bhtd.device()), -infinity),
                                   -1);
  const auto mean_of = [](const at::Tensor& p_bhi) {
    return to_doubles(p_bhi.mean(at::IntArrayRef{0, 2}, /*keepdim=*/false, at::kDouble));
  };
  // Query half + i attends to i + 1, what followed the same token: the offset is -(half - 1). The token before it is
  // half + i - 1.
  return {{"induction", mean_of(p.diagonal(1, 2, 3))}, {"previous_random", mean_of(p.diagonal(half - 1, 2, 3))}};
}

}  // namespace headscope
