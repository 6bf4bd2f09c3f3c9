#include "probe/ranks.h"

#include <ATen/Parallel.h>

#include <span>

#include "core/missing.h"
#include "core/parallel.h"
#include "probe/probe.h"
#include "stats/sample_moments.h"
#include "stats/spectrum.h"

namespace headscope {
namespace {

std::size_t workers() {
  return static_cast<std::size_t>(at::get_num_threads());
}

at::Tensor grams(const at::Tensor& x_bthd) {
  const at::Tensor x_bhtd = x_bthd.detach().transpose(1, 2).to(at::kDouble);
  return at::matmul(x_bhtd.mT(), x_bhtd);
}

// Over the sequences, on the CPU. Without one of them: the sum of all less that one, exact to a rounding of the sum.
at::Tensor summed(const at::Tensor& of_sequences, std::optional<std::int64_t> left_out) {
  if (!of_sequences.defined()) return {};
  const at::Tensor sum = of_sequences.sum(0);
  return (left_out ? sum - of_sequences[*left_out] : sum).cpu().contiguous();
}

// Matrix number `head`.
std::span<const double> matrix(const at::Tensor& grams_hdd, std::int64_t head) {
  const std::int64_t size = grams_hdd.size(1) * grams_hdd.size(2);
  return {grams_hdd.const_data_ptr<double>() + head * size, static_cast<std::size_t>(size)};
}

// The participation ratio of each head from its Gram matrix.
std::vector<double> ratios(const at::Tensor& gram_hdd) {
  std::vector<double> values;
  for (std::int64_t head = 0; head < gram_hdd.size(0); ++head)
    values.push_back(participation_ratio(singular_values_of_gram(matrix(gram_hdd, head), gram_hdd.size(1))));
  return values;
}

// The same of QKᵀ, of each query head with its key head.
std::vector<double> product_ratios(const at::Tensor& q_hdd, const at::Tensor& k_hdd) {
  std::vector<double> values;
  const std::int64_t heads = q_hdd.size(0), key_heads = k_hdd.size(0);
  for (std::int64_t head = 0; head < heads; ++head)
    values.push_back(participation_ratio(
        singular_values_of_product(matrix(q_hdd, head), matrix(k_hdd, head * key_heads / heads), q_hdd.size(1))));
  return values;
}

// KᵀK less the mean key: Σ (k - m)(k - m)ᵀ = Σ k kᵀ - n m mᵀ.
at::Tensor centred(const at::Tensor& gram_hdd, const at::Tensor& sum_hd, double tokens) {
  return gram_hdd - sum_hd.unsqueeze(-1) * sum_hd.unsqueeze(-2) / tokens;
}

// Of keys whose components are divided by the gain.
at::Tensor without_gain(const at::Tensor& gram_hdd, const std::vector<double>& gain) {
  const at::Tensor all = at::tensor(gain, at::kDouble);
  const bool of_one_head = all.numel() <= gram_hdd.size(-1);
  const at::Tensor inverse_hd = 1 / (of_one_head ? all.unsqueeze(0) : all.view({gram_hdd.size(0), -1}));
  return (gram_hdd * inverse_hd.unsqueeze(-1) * inverse_hd.unsqueeze(-2)).contiguous();
}

RankSums on_cpu(RankSums sums) {
  for (at::Tensor* sum : {&sums.k_shdd, &sums.k_rotated_shdd, &sums.q_shdd, &sums.q_rotated_shdd, &sums.k_sum_shd})
    if (sum->defined()) *sum = sum->cpu();
  return sums;
}

}  // namespace

RankSums rank_sums(const HeadVectors& vectors, const MetricSelection& chosen, bool by_sequence) {
  const at::NoGradGuard no_gradients;
  const auto sequences = [&](const at::Tensor& x_bthd) {
    return by_sequence ? x_bthd.detach() : x_bthd.detach().flatten(0, 1).unsqueeze(0);
  };
  const at::Tensor k = sequences(vectors.k_bthd);
  const bool rotated_products = chosen.has("qk_pr_rotated");
  RankSums sums;
  sums.seq_len = k.size(1);
  sums.k_shdd = grams(k);
  if (chosen.has("k_pr_centred")) sums.k_sum_shd = k.sum(1, /*keepdim=*/false, at::kDouble);
  if (chosen.has("qk_pr")) sums.q_shdd = grams(sequences(vectors.q_bthd));
  if (rotated_products || chosen.has("k_pr_rotated")) sums.k_rotated_shdd = grams(sequences(vectors.k_rotated_bthd));
  if (rotated_products) sums.q_rotated_shdd = grams(sequences(vectors.q_rotated_bthd));
  return sums;
}

std::vector<double> key_gain(const Gains& gains, std::int64_t layer) {
  return gains.k.empty() ? std::vector<double>() : gains.k[static_cast<std::size_t>(layer)];
}

HeadValues rank_values(const RankSums& sums, const std::vector<double>& k_gain, const MetricSelection& chosen,
                       std::optional<std::int64_t> left_out) {
  const at::NoGradGuard no_gradients;
  const at::Tensor k_hdd = summed(sums.k_shdd, left_out), k_rotated_hdd = summed(sums.k_rotated_shdd, left_out);
  const auto tokens = static_cast<double>((sums.k_shdd.size(0) - (left_out ? 1 : 0)) * sums.seq_len);
  HeadValues values;
  values["k_pr"] = ratios(k_hdd);
  if (chosen.has("k_pr_centred"))
    values["k_pr_centred"] = ratios(centred(k_hdd, summed(sums.k_sum_shd, left_out), tokens));
  if (chosen.has("k_pr_rotated")) values["k_pr_rotated"] = ratios(k_rotated_hdd);
  if (chosen.has("k_pr_before_gain"))
    values["k_pr_before_gain"] = k_gain.empty() ? values.at("k_pr") : ratios(without_gain(k_hdd, k_gain));
  if (chosen.has("qk_pr")) values["qk_pr"] = product_ratios(summed(sums.q_shdd, left_out), k_hdd);
  if (chosen.has("qk_pr_rotated"))
    values["qk_pr_rotated"] = product_ratios(summed(sums.q_rotated_shdd, left_out), k_rotated_hdd);
  return values;
}

void RankJackknife::add_layer(const RankSums& by_sequence, const std::vector<double>& k_gain,
                              const MetricSelection& chosen) {
  const RankSums sums = on_cpu(by_sequence);
  std::vector<HeadValues> without(static_cast<std::size_t>(sums.k_shdd.size(0)));
  parallel_for(without.size(), workers(), [&](std::size_t left_out) {
    without[left_out] = rank_values(sums, k_gain, chosen, static_cast<std::int64_t>(left_out));
  });
  for (const auto& [metric, unused] : without.front()) {
    std::vector<double>& means = replicates_[std::string(metric)].emplace_back();
    for (const HeadValues& values : without) means.push_back(rough_mean(values.at(metric)));
  }
}

RankErrors RankJackknife::errors() const {
  RankErrors errors;
  for (const auto& [metric, layers] : replicates_) {
    std::vector<double> means(layers.front().size());
    for (const std::vector<double>& layer : layers) {
      errors.layers[metric].push_back(jackknife_error(layer));
      for (std::size_t i = 0; i < means.size(); ++i) means[i] += layer[i] / static_cast<double>(layers.size());
    }
    errors.mean[metric] = jackknife_error(means);
  }
  return errors;
}

RankErrors measure_rank_errors(const Decoder& model, const at::Tensor& tokens_bt, at::ScalarType type,
                               const MetricSelection& chosen) {
  const at::NoGradGuard no_gradients;
  const Gains gains = gains_of(model);
  RankJackknife jackknife;
  observe_heads(model, tokens_bt, type, model.config.layers - 1, [&](std::int64_t layer, const HeadVectors& vectors) {
    jackknife.add_layer(rank_sums(vectors, chosen, /*by_sequence=*/true), key_gain(gains, layer), chosen);
  });
  return jackknife.errors();
}

}  // namespace headscope
