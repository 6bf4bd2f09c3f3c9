#include "probe/measure.h"

#include "core/random.h"
#include "probe/attention_statistics.h"
#include "probe/key_statistics.h"

namespace headscope {
namespace {

constexpr std::int64_t induction_sequences = 8;
constexpr std::int64_t induction_period = 64;  // tokens before they repeat; less where sequences are shorter

HeadValues query_norms(const at::Tensor& q_bthd, const std::vector<double>& k_norm) {
  const at::Tensor norm_bth = q_bthd.detach().to(at::kDouble).square().sum(-1).sqrt();
  const std::vector<double> q_norm = to_doubles(norm_bth.mean(at::IntArrayRef{0, 1}));
  HeadValues values = {{"q_norm", q_norm}, {"qk_ratio", {}}};
  for (std::size_t head = 0; head < q_norm.size(); ++head)
    values["qk_ratio"].push_back(q_norm[head] / k_norm[head * k_norm.size() / q_norm.size()]);
  return values;
}

at::Tensor repeated_tokens(std::int64_t vocabulary, std::int64_t period) {
  NumpyGenerator generator(0);
  const at::Tensor tokens_bt = at::empty({induction_sequences, period}, at::kLong);
  auto* values = tokens_bt.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < tokens_bt.numel(); ++i)
    values[i] = static_cast<std::int64_t>(generator.integers(static_cast<std::uint64_t>(vocabulary)));
  return at::cat({tokens_bt, tokens_bt}, 1);
}

}  // namespace

HeadValues measure_layer(const HeadVectors& vectors, const MetricSelection& chosen) {
  const at::NoGradGuard no_gradients;
  HeadValues values;
  if (chosen.has(MetricGroup::norm) || chosen.has(MetricGroup::outlier) || chosen.has(MetricGroup::redundancy))
    values.merge(key_statistics(vectors.k_bthd));
  if (chosen.has(MetricGroup::norm)) values.merge(query_norms(vectors.q_bthd, values.at("k_norm")));
  if (chosen.has(MetricGroup::rank)) values.merge(key_spectrum(vectors.k_bthd));
  if (chosen.has(MetricGroup::attention) || chosen.has(MetricGroup::pattern))
    values.merge(attention_statistics(vectors.q_rotated_bthd, vectors.k_rotated_bthd, vectors.scale));
  if (chosen.has("entropy_seed")) values.merge(seed_entropy(vectors.q_bthd, vectors.k_bthd, vectors.scale));
  std::erase_if(values, [&](const auto& entry) { return !chosen.has(entry.first); });
  return values;
}

std::vector<HeadValues> measure_induction(const Decoder& model) {
  const at::NoGradGuard no_gradients;
  const std::int64_t period = std::min(induction_period, model.config.positions / 2);
  const at::Tensor tokens = repeated_tokens(model.config.vocabulary, period).to(model.embedding.device());
  std::vector<HeadValues> layers;
  final_hidden(model, tokens, at::kFloat, {.observe = [&](std::int64_t, const HeadVectors& vectors) {
                 layers.push_back(induction_score(vectors.q_rotated_bthd, vectors.k_rotated_bthd, vectors.scale));
               }});
  return layers;
}

}  // namespace headscope
