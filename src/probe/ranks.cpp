#include "probe/ranks.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>

#include "core/error.h"
#include "core/parallel.h"
#include "probe/workers.h"
#include "stats/spectrum.h"

namespace headscope {
namespace {

constexpr std::array all_sums = {&RankSums::k_shdd,         &RankSums::k_rotated_shdd, &RankSums::q_shdd,
                                 &RankSums::q_rotated_shdd, &RankSums::k_sum_shd,      &RankSums::k_rotated_sum_shd};

// XᵀX of each sequence and head.
at::Tensor grams(const at::Tensor& x_bthd) {
  const at::Tensor x_bhtd = x_bthd.detach().transpose(1, 2).to(at::kDouble);
  return at::matmul(x_bhtd.mT(), x_bhtd).contiguous();
}

at::Tensor sums(const at::Tensor& x_bthd) {
  return x_bthd.detach().sum(1, /*keepdim=*/false, at::kDouble);
}

// Σ (k - m)(k - m)ᵀ = Σ k kᵀ - n m mᵀ with the mean m.
at::Tensor centred(const at::Tensor& gram_shdd, const at::Tensor& sum_shd, double tokens) {
  return gram_shdd - sum_shd.unsqueeze(-1) * sum_shd.unsqueeze(-2) / tokens;
}

// Of keys whose components are divided by the gain.
at::Tensor without_gain(const at::Tensor& gram_shdd, const std::vector<double>& gain) {
  const at::Tensor all = at::tensor(gain, at::kDouble);
  const bool of_one_head = all.numel() <= gram_shdd.size(-1);
  const at::Tensor inverse_hd = 1 / (of_one_head ? all.unsqueeze(0) : all.view({gram_shdd.size(1), -1}));
  return gram_shdd * inverse_hd.unsqueeze(-1) * inverse_hd.unsqueeze(-2);
}

// What the singular values of a measure come from: XᵀX of each head, or QᵀQ and KᵀK where they are those of QKᵀ.
struct Grams {
  at::Tensor of_shdd;
  at::Tensor keys_shdd = {};  // undefined: not a product
};

Grams grams_of(std::string_view measure, const RankSums& sums) {
  if (measure == "k_pr") return {sums.k_shdd};
  if (measure == "k_pr_centred") return {centred(sums.k_shdd, sums.k_sum_shd, sums.tokens)};
  if (measure == "k_pr_rotated") return {sums.k_rotated_shdd};
  if (measure == "k_pr_before_gain")
    return {sums.k_gain.empty() ? sums.k_shdd : without_gain(sums.k_shdd, sums.k_gain)};
  if (measure == "qk_pr") return {sums.q_shdd, sums.k_shdd};
  HEADSCOPE_CHECK(measure == "qk_pr_rotated", "{} is no measure of rank", measure);
  return {sums.q_rotated_shdd, sums.k_rotated_shdd};
}

// The matrix of one head of one set.
std::span<const double> matrix(const at::Tensor& grams_shdd, std::int64_t set, std::int64_t head) {
  HEADSCOPE_CHECK(grams_shdd.is_contiguous(), "strides of {} dimensions", grams_shdd.dim());
  const std::int64_t size = grams_shdd.size(2) * grams_shdd.size(3);
  return {grams_shdd.const_data_ptr<double>() + (set * grams_shdd.size(1) + head) * size,
          static_cast<std::size_t>(size)};
}

// The participation ratio of a head, to be computed.
struct Ratio {
  std::span<const double> gram, keys;  // d·d values each; no keys: not a product
  std::int64_t d = 0;
  double* value = nullptr;

  void compute() const {
    *value = participation_ratio(keys.empty() ? singular_values_of_gram(gram, d)
                                              : singular_values_of_product(gram, keys, d));
  }
};

// Those of all heads of all sets; they go to values[set][measure][head].
std::vector<Ratio> ratios_of(std::string_view measure, const Grams& grams, std::vector<HeadValues>& values) {
  const std::int64_t heads = grams.of_shdd.size(1), d = grams.of_shdd.size(2);
  values.resize(static_cast<std::size_t>(grams.of_shdd.size(0)));
  std::vector<Ratio> ratios;
  for (std::size_t place = 0; place < values.size(); ++place) {
    const auto set = static_cast<std::int64_t>(place);
    std::vector<double>& of_heads = values[place][measure];
    of_heads.resize(static_cast<std::size_t>(heads));
    for (std::int64_t head = 0; head < heads; ++head) {
      Ratio ratio{matrix(grams.of_shdd, set, head), {}, d, &of_heads[static_cast<std::size_t>(head)]};
      if (grams.keys_shdd.defined()) ratio.keys = matrix(grams.keys_shdd, set, head * grams.keys_shdd.size(1) / heads);
      ratios.push_back(ratio);
    }
  }
  return ratios;
}

// Without a gain, k_pr_before_gain is k_pr.
bool is_known_before_gain(const RankSums& sums, const RankMeasures& measures) {
  return sums.k_gain.empty() && measures.contains("k_pr") && measures.contains("k_pr_before_gain");
}

}  // namespace

RankSums rank_sums(const HeadVectors& vectors, const RankMeasures& measures, const std::vector<double>& k_gain) {
  const at::NoGradGuard no_gradients;
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [&](std::string_view name) { return measures.contains(name); });
  };
  RankSums result;
  result.tokens = static_cast<double>(vectors.k_bthd.size(1));
  result.scale = vectors.scores.scale;
  result.k_gain = k_gain;
  if (any({"k_pr", "k_pr_centred", "k_pr_before_gain", "qk_pr"})) result.k_shdd = grams(vectors.k_bthd);
  if (any({"k_pr_centred"})) result.k_sum_shd = sums(vectors.k_bthd);
  if (any({"qk_pr"})) result.q_shdd = grams(vectors.q_bthd);
  if (any({"k_pr_rotated", "qk_pr_rotated", "score_std"})) result.k_rotated_shdd = grams(vectors.k_rotated_bthd);
  if (any({"score_std"})) result.k_rotated_sum_shd = sums(vectors.k_rotated_bthd);
  if (any({"qk_pr_rotated", "score_std"})) result.q_rotated_shdd = grams(vectors.q_rotated_bthd);
  return result;
}

RankSums over_all_sequences(const RankSums& by_sequence) {
  RankSums all = by_sequence;
  for (const auto sum : all_sums) {
    if (!(all.*sum).defined()) continue;
    all.tokens = by_sequence.tokens * static_cast<double>((by_sequence.*sum).size(0));
    all.*sum = (by_sequence.*sum).sum(0, /*keepdim=*/true);
  }
  return all;
}

RankSums without_each_sequence(const RankSums& by_sequence) {
  RankSums others = over_all_sequences(by_sequence);
  others.tokens -= by_sequence.tokens;
  for (const auto sum : all_sums)
    if ((others.*sum).defined()) others.*sum = others.*sum - by_sequence.*sum;
  return others;
}

void move_to_cpu(std::vector<RankSums>& layers) {
  std::vector<at::Tensor*> there;
  for (RankSums& layer : layers)
    for (const auto sum : all_sums)
      if ((layer.*sum).defined() && !(layer.*sum).device().is_cpu()) there.push_back(&(layer.*sum));
  if (there.empty()) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor* tensor : there) flat.push_back(tensor->flatten());
  const at::Tensor here = at::cat(flat).cpu();
  std::int64_t next = 0;
  for (at::Tensor* tensor : there) {
    const std::int64_t size = tensor->numel();
    *tensor = here.narrow(0, next, size).view(tensor->sizes());
    next += size;
  }
}

std::vector<std::vector<HeadValues>> rank_values(std::span<const RankSums> layers, const RankMeasures& measures) {
  const at::NoGradGuard no_gradients;
  std::vector<std::vector<HeadValues>> values(layers.size());
  std::vector<Grams> kept;  // what the ratios are made of
  std::vector<Ratio> ratios;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (const std::string_view measure : measures) {
      if (measure == "k_pr_before_gain" && is_known_before_gain(layers[layer], measures)) continue;
      kept.push_back(grams_of(measure, layers[layer]));
      std::ranges::copy(ratios_of(measure, kept.back(), values[layer]), std::back_inserter(ratios));
    }
  }
  parallel_for(ratios.size(), workers(), [&](std::size_t i) { ratios[i].compute(); });
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    if (is_known_before_gain(layers[layer], measures))
      for (HeadValues& of_set : values[layer]) of_set["k_pr_before_gain"] = of_set.at("k_pr");
  return values;
}

// The scores q·k of one query vary over keys by qᵀCq, with the covariance C of the keys; the mean of that over queries
// is the sum of (QᵀQ / t) ∘ C. So nothing is as large as the scores.
at::Tensor score_std(const RankSums& by_sequence) {
  const at::NoGradGuard no_gradients;
  const RankSums& s = by_sequence;
  const at::Tensor covariance_shdd = centred(s.k_rotated_shdd, s.k_rotated_sum_shd, s.tokens) / s.tokens;
  const at::Tensor squares_shgdd = s.q_rotated_shdd.unflatten(1, {covariance_shdd.size(1), -1}) / s.tokens;
  const at::Tensor variance_shg = (squares_shgdd * covariance_shdd.unsqueeze(2)).sum({3, 4});
  // Of equal keys it is 0, which rounding may leave below.
  return s.scale * variance_shg.mean(0).clamp_min(0).sqrt().flatten();
}

}  // namespace headscope
