#include "probe/key_statistics.h"

#include <Eigen/Core>
#include <cmath>
#include <span>
#include <tuple>

#include "core/missing.h"
#include "core/parallel.h"
#include "probe/workers.h"
#include "stats/sample_moments.h"
#include "stats/spectrum.h"

#ifdef HEADSCOPE_CUDA
#include "probe/cuda/inputs.h"
#include "probe/cuda/key_sums.h"
#endif

namespace headscope {
namespace {

// The keys of one head in memory: n rows of d values, `stride` apart.
struct KeyRows {
  const float* first = nullptr;
  std::int64_t n = 0, d = 0, stride = 0;
  std::int64_t t = 0;  // tokens of a sequence

  [[nodiscard]] Eigen::Map<const Eigen::ArrayXf> row(std::int64_t i) const { return {first + i * stride, d}; }
};

// Mean and standard deviation (n in the denominator). Sums in an order that does not depend on where values lie, as
// Eigen's would.
std::pair<double, double> mean_and_deviation(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double mean = rough_mean(values);
  const auto [squares] =
      sums<1>(values.size(), [&](std::size_t i) { return std::array{(values[i] - mean) * (values[i] - mean)}; });
  return {mean, std::sqrt(squares / n)};
}

// What the statistics of one head are made of. Three functions fill it: for float32 on a CPU, by a kernel on a GPU, by
// tensor operations anywhere.
struct KeySummary {
  double norm = 0, norm_std = 0, std = 0;  // mean and deviation of the norms; deviation of all components
  double token0_norm = 0, max_abs_mean = 0, max_abs = 0;
  double alive = 0;                         // keys with a norm above 0, and sums over them:
  double axes = 0, ratios = 0, on_top = 0;  // max |k| / |k|; (Σ k²)² / Σ k⁴; max |k| is in the dimension top_dim
  double square_of_units = 0;               // |Σ k / |k||²
  double top_dim = 0, top_energy = 0, energy = 0;  // the dimension with the largest Σ k², its Σ k², that of all
};

// The one place that names the statistics and divides the sums.
OneHead statistics_of(const KeySummary& keys) {
  const double alive = keys.alive;
  return {{"k_norm", keys.norm},
          {"k_norm_std", keys.norm_std},
          {"k_std", keys.std},
          {"k_token0_norm", keys.token0_norm},
          {"k_max_abs_mean", keys.max_abs_mean},
          {"k_max_abs", keys.max_abs},
          {"k_axis", keys.axes / alive},
          {"k_pr_vector", keys.ratios / alive},
          {"k_top_dim", keys.energy > 0 ? keys.top_dim : missing},
          {"k_top_energy", keys.top_energy / keys.energy},
          {"k_top_share", keys.on_top / alive},
          {"k_cosine", alive > 1 ? (keys.square_of_units - alive) / (alive * (alive - 1)) : missing}};
}

// Standard deviation of n values out of the sums of (value - shift) and of its square.
double deviation(double shifted, double squares, double n) {
  const double variance = squares / n - (shifted / n) * (shifted / n);
  return variance < 0 ? 0 : std::sqrt(variance);
}

// One pass over the keys of a head, and one over the norm and the largest component of each.
KeySummary summary_of(const KeyRows& keys) {
  std::vector<double> norms, tops;
  Eigen::ArrayXd k(keys.d), squares(keys.d);
  Eigen::ArrayXd energy = Eigen::ArrayXd::Zero(keys.d), units = Eigen::ArrayXd::Zero(keys.d);
  KeySummary summary;
  double token0_norms = 0, shifted = 0, shifted_squares = 0;
  const double shift = keys.first[0];  // the deviation of equal components is then exactly 0
  for (std::int64_t i = 0; i < keys.n; ++i) {
    k = keys.row(i).cast<double>();
    squares = k.square();
    const double energy_of_key = squares.sum(), norm = std::sqrt(energy_of_key), top = k.abs().maxCoeff();
    norms.push_back(norm);
    tops.push_back(top);
    energy += squares;
    shifted += (k - shift).sum();
    shifted_squares += (k - shift).square().sum();
    if (i % keys.t == 0) token0_norms += norm;
    if (norm == 0) continue;
    ++summary.alive;
    summary.axes += top / norm;
    summary.ratios += energy_of_key * energy_of_key / squares.square().sum();
    units += k / norm;
  }
  Eigen::Index top_dim = 0;
  summary.top_energy = energy.maxCoeff(&top_dim);
  summary.top_dim = static_cast<double>(top_dim);
  summary.energy = energy.sum();
  for (std::int64_t i = 0; i < keys.n; ++i) {
    const auto place = static_cast<std::size_t>(i);
    if (norms[place] > 0 && std::fabs(keys.first[i * keys.stride + top_dim]) == tops[place]) ++summary.on_top;
  }
  summary.square_of_units = units.square().sum();
  std::tie(summary.norm, summary.norm_std) = mean_and_deviation(norms);
  summary.std = deviation(shifted, shifted_squares, static_cast<double>(keys.n * keys.d));
  summary.token0_norm = token0_norms / static_cast<double>(keys.n / keys.t);
  summary.max_abs_mean = rough_mean(tops);
  summary.max_abs = *std::max_element(tops.begin(), tops.end());
  return summary;
}

#ifdef HEADSCOPE_CUDA
bool has_key_kernel(const at::Tensor& k_bthd) {
  return cuda::has_kernel_type(k_bthd) && k_bthd.numel() > 0 && k_bthd.numel() < (std::int64_t{1} << 31) &&
         k_bthd.size(3) <= 128 && cuda::supports_key_sums(static_cast<int>(k_bthd.size(3)));
}

// Queries have the shape of keys.
cuda::KeyShape key_shape(const at::Tensor& k) {
  const auto pair = static_cast<std::int64_t>(2 * k.element_size());
  cuda::KeyShape shape;
  shape.n = k.size(0) * k.size(1);
  shape.t = k.size(1);
  shape.heads = static_cast<int>(k.size(2));
  shape.d = static_cast<int>(k.size(3));
  shape.strides = cuda::strides_of(k);
  shape.pairs = shape.d % 2 == 0 && cuda::begins_at_multiples_of(pair, k);
  shape.packs = shape.d % 8 == 0 && cuda::begins_at_multiples_of(16, k);
  shape.flat = k.size(0) == 1 || shape.strides.sequence == shape.t * shape.strides.token;
  shape.type = cuda::element_type(k);
  return shape;
}

// Where the largest value is; the first NaN if there is one, as at::max has it.
std::size_t place_of_largest(std::span<const double> values) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] > values[best] || (std::isnan(values[i]) && !std::isnan(values[best]))) best = i;
  return best;
}

KeySummary summary_of(const double* sums, const cuda::KeyShape& shape) {
  const auto d = static_cast<std::size_t>(shape.d);
  const auto vector = [&](cuda::KeyVector which) { return std::span(sums + cuda::key_scalars + which * shape.d, d); };
  const std::span<const double> energy = vector(cuda::energies);
  const std::size_t top_dim = place_of_largest(energy);
  const auto n = static_cast<double>(shape.n);
  KeySummary summary;
  for (std::size_t i = 0; i < d; ++i) {
    summary.energy += energy[i];
    summary.square_of_units += vector(cuda::units)[i] * vector(cuda::units)[i];
  }
  summary.norm = sums[cuda::norm_shift] + sums[cuda::norms] / n;
  summary.norm_std = deviation(sums[cuda::norms], sums[cuda::norm_squares], n);
  summary.std = deviation(sums[cuda::components], sums[cuda::component_squares], n * static_cast<double>(shape.d));
  summary.token0_norm = sums[cuda::token0_norms] / static_cast<double>(shape.n / shape.t);
  summary.max_abs_mean = sums[cuda::tops] / n;
  summary.max_abs = sums[cuda::largest_top];
  summary.alive = sums[cuda::alive];
  summary.axes = sums[cuda::axes];
  summary.ratios = sums[cuda::ratios];
  summary.on_top = vector(cuda::on_top)[top_dim];
  summary.top_dim = static_cast<double>(top_dim);
  summary.top_energy = energy[top_dim];
  return summary;
}

PendingKeys kernel_statistics(const at::Tensor& k_bthd) {
  const c10::cuda::CUDAGuard device(k_bthd.device());
  const at::Tensor k = cuda::head_input(k_bthd, static_cast<std::int64_t>(k_bthd.element_size()));
  const cuda::KeyShape shape = key_shape(k);
  const std::int64_t heads = shape.heads, d = shape.d, values = heads * cuda::key_values(shape.d);
  const auto doubles = k.options().dtype(at::kDouble);
  const at::Tensor partials = at::empty({cuda::key_chunks(shape), heads, cuda::key_partials(shape.d)}, doubles);
  const at::Tensor sums = at::empty({values + heads * d * d}, doubles);
  cuda::key_sums(k.const_data_ptr(), shape, partials.mutable_data_ptr<double>(), sums.mutable_data_ptr<double>(),
                 c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const auto values_of = [shape](const double* of_heads) {
    std::vector<OneHead> statistics;
    for (std::int64_t head = 0; head < shape.heads; ++head)
      statistics.push_back(statistics_of(summary_of(of_heads + head * cuda::key_values(shape.d), shape)));
    return by_metric(statistics);
  };
  return {{{}, sums.narrow(0, 0, values), values_of}, sums.narrow(0, values, heads * d * d).view({heads, d, d})};
}

PendingValues kernel_norms(const at::Tensor& q_bthd) {
  const c10::cuda::CUDAGuard device(q_bthd.device());
  const at::Tensor q = cuda::head_input(q_bthd, static_cast<std::int64_t>(q_bthd.element_size()));
  const cuda::KeyShape shape = key_shape(q);
  const std::int64_t chunks = cuda::norm_chunks(shape), heads = shape.heads, n = shape.n;
  const at::Tensor sums_ch = at::empty({chunks, heads}, q.options().dtype(at::kDouble));
  cuda::norm_sums(q.const_data_ptr(), shape, sums_ch.mutable_data_ptr<double>(), c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {{}, sums_ch, [=](const double* sums) {
            std::vector<double> means(static_cast<std::size_t>(heads));
            for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
              for (double& mean : means) mean += *sums++;
            for (double& mean : means) mean /= static_cast<double>(n);
            return HeadValues{{"q_norm", means}};
          }};
}
#endif

HeadValues cpu_statistics(const at::Tensor& k_bthd) {
  const at::Tensor k = k_bthd.detach().to(at::kFloat).contiguous();
  const std::int64_t heads = k.size(2), d = k.size(3);
  std::vector<OneHead> of_head(static_cast<std::size_t>(heads));
  parallel_for(of_head.size(), workers(), [&](std::size_t head) {
    of_head[head] = statistics_of(summary_of(KeyRows{k.const_data_ptr<float>() + static_cast<std::int64_t>(head) * d,
                                                     k.size(0) * k.size(1), d, heads * d, k.size(1)}));
  });
  return by_metric(of_head);
}

at::Tensor composed_gram(const at::Tensor& k_bthd) {
  const at::Tensor k_hnd = k_bthd.detach().flatten(0, 1).transpose(0, 1).to(at::kDouble);
  return at::bmm(k_hnd.mT(), k_hnd);
}

}  // namespace

PendingValues begin_key_statistics_composed(const at::Tensor& k_bthd) {
  const at::Tensor k_nhd = k_bthd.detach().to(at::kDouble).flatten(0, 1);
  const at::Tensor squares_nhd = k_nhd.square(), norm_nh = squares_nhd.sum(-1).sqrt(), size_nhd = k_nhd.abs();
  const at::Tensor top_nh = size_nhd.amax(-1), alive_nh = norm_nh > 0;
  const auto sum_alive = [&](const at::Tensor& values_nh) { return values_nh.where(alive_nh, 0.0).sum(0); };
  const at::Tensor energy_hd = squares_nhd.sum(0);
  const auto [top_energy_h, top_dim_h] = energy_hd.max(-1);
  const at::Tensor at_top_nh =
      size_nhd.gather(-1, top_dim_h.view({1, -1, 1}).expand({k_nhd.size(0), -1, 1})).squeeze(-1);
  const at::Tensor units_hd = (k_nhd / norm_nh.unsqueeze(-1)).where(alive_nh.unsqueeze(-1), 0.0).sum(0);
  const at::Tensor summaries_hv =
      at::stack({norm_nh.mean(0), norm_nh.std(at::IntArrayRef{0}, /*unbiased=*/false),
                 k_nhd.std(at::IntArrayRef{0, 2}, /*unbiased=*/false),
                 norm_nh.unflatten(0, {k_bthd.size(0), -1}).select(1, 0).mean(0), top_nh.mean(0), top_nh.amax(0),
                 alive_nh.sum(0).to(at::kDouble), sum_alive(top_nh / norm_nh),
                 sum_alive(squares_nhd.sum(-1).square() / squares_nhd.square().sum(-1)),
                 sum_alive((at_top_nh == top_nh).to(at::kDouble)), units_hd.square().sum(-1), top_dim_h.to(at::kDouble),
                 top_energy_h, energy_hd.sum(-1)},
                1);
  return {{}, summaries_hv, [heads = summaries_hv.size(0), values = summaries_hv.size(1)](const double* s) {
            std::vector<OneHead> of_heads;
            for (std::int64_t head = 0; head < heads; ++head, s += values)
              of_heads.push_back(statistics_of(
                  {s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8], s[9], s[10], s[11], s[12], s[13]}));
            return by_metric(of_heads);
          }};
}

PendingValues begin_key_statistics(const at::Tensor& k_bthd) {
#ifdef HEADSCOPE_CUDA
  if (has_key_kernel(k_bthd)) return kernel_statistics(k_bthd).statistics;
#endif
  if (!k_bthd.device().is_cpu() || k_bthd.scalar_type() == at::kDouble) return begin_key_statistics_composed(k_bthd);
  return {.known = cpu_statistics(k_bthd)};
}

at::Tensor key_gram(const at::Tensor& k_bthd) {
#ifdef HEADSCOPE_CUDA
  if (has_key_kernel(k_bthd)) return kernel_statistics(k_bthd).gram_hdd;
#endif
  return composed_gram(k_bthd);
}

PendingKeys begin_key_statistics_and_gram(const at::Tensor& k_bthd) {
#ifdef HEADSCOPE_CUDA
  if (has_key_kernel(k_bthd)) return kernel_statistics(k_bthd);
#endif
  return {begin_key_statistics(k_bthd), composed_gram(k_bthd)};
}

PendingValues begin_query_norms(const at::Tensor& q_bthd) {
#ifdef HEADSCOPE_CUDA
  if (has_key_kernel(q_bthd)) return kernel_norms(q_bthd);
#endif
  const at::Tensor norm_bth =
      at::linalg_vector_norm(q_bthd.detach(), 2, at::IntArrayRef{-1}, /*keepdim=*/false, at::kDouble);
  return {{}, norm_bth.mean(at::IntArrayRef{0, 1}), [heads = q_bthd.size(2)](const double* means) {
            return HeadValues{{"q_norm", {means, means + heads}}};
          }};
}

HeadValues spectrum_of_gram(const at::Tensor& given_hdd) {
  const at::Tensor gram_hdd = given_hdd.contiguous();
  const std::int64_t heads = gram_hdd.size(0), d = gram_hdd.size(1);
  HeadValues values;
  for (const char* metric : {"k_pr", "k_erank", "k_pr_eig", "k_stable_rank"})
    values[metric].resize(static_cast<std::size_t>(heads));
  parallel_for(static_cast<std::size_t>(heads), workers(), [&](std::size_t place) {
    const std::span gram(gram_hdd.const_data_ptr<double>() + static_cast<std::int64_t>(place) * d * d,
                         static_cast<std::size_t>(d * d));
    const std::vector<double> s = singular_values_of_gram(gram, d);
    values.at("k_pr")[place] = participation_ratio(s);
    values.at("k_erank")[place] = effective_rank(s);
    values.at("k_pr_eig")[place] = eigen_participation_ratio(s);
    values.at("k_stable_rank")[place] = stable_rank(s);
  });
  return values;
}

}  // namespace headscope
