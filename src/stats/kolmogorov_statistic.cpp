// The supremum without sorting all samples. With F_n and Phi known at the edges of fine bins,
//   D >= |F_n(e) - Phi(e)| at every edge e, and
//   samples of a bin [a, b) deviate by at most max(F_n(b) - Phi(a), Phi(b) - F_n(a)),
// so only bins whose bound reaches the best edge are sorted and evaluated: a few per cent of the samples.
#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/missing.h"
#include "stats/kolmogorov.h"
#include "stats/normal.h"

namespace headscope {
namespace {

// Below this, sorting everything is faster than looking at every bin.
constexpr std::size_t kSortAll = 128;

// Far above the rounding of the bounds (a few eps), far below anything that would make bins useless.
constexpr double kSlack = 1e-12;

// Bins of equal width in z on [-kSpan, kSpan). The outermost two are open, which changes no bound: Phi(-kSpan) is
// 1e-17.
class Bins {
 public:
  explicit Bins(int per_unit) : per_unit_(per_unit), phi_(static_cast<std::size_t>(2 * kSpan * per_unit) + 1) {
    for (std::size_t i = 0; i < phi_.size(); ++i) phi_[i] = static_cast<double>(i) / per_unit - kSpan;
    normal_cdf(phi_, phi_);
    last_ = static_cast<double>(count() - 1);
  }

  [[nodiscard]] std::size_t count() const { return phi_.size() - 1; }
  // Phi at the edges: bin b lies between phi()[b] and phi()[b + 1].
  [[nodiscard]] const std::vector<double>& phi() const { return phi_; }
  // NaN falls into bin 0.
  [[nodiscard]] std::int32_t index(double z) const {
    double position = (z + kSpan) * per_unit_;
    position = position > 0 ? position : 0;
    position = position < last_ ? position : last_;
    return static_cast<std::int32_t>(position);
  }

 private:
  static constexpr double kSpan = 8.5;
  double per_unit_;
  double last_ = 0;
  std::vector<double> phi_;
};

// D is about 0.6 / sqrt(n) for normal samples; the mass of a bin (at most 0.4 / per_unit) has to stay well below it.
const Bins& bins_for(std::size_t n) {
  static const Bins coarse(512);
  if (n <= 30'000) return coarse;
  static const Bins medium(1024);
  if (n <= 200'000) return medium;
  static const Bins fine(4096);
  return fine;
}

// The largest deviation at samples of which the first has rank `rank` among all n; phi_sorted is Phi of them, sorted.
double deviation_at(std::span<const double> phi_sorted, std::size_t rank, std::size_t n) {
  const auto count = static_cast<double>(n);
  double largest = 0;
  for (std::size_t i = 0; i < phi_sorted.size(); ++i) {
    const auto below = static_cast<double>(rank + i);
    largest = std::max(largest, std::max((below + 1) / count - phi_sorted[i], phi_sorted[i] - below / count));
  }
  return largest;
}

double by_sorting(std::vector<double> z) {
  if (std::ranges::any_of(z, [](double value) { return std::isnan(value); })) return missing;
  std::ranges::sort(z);
  normal_cdf(z, z);
  return deviation_at(z, 0, z.size());
}

// A bin that can hold the supremum. Its samples are first .. first + count of those collected.
struct Candidate {
  std::size_t first = 0, count = 0;
  std::size_t rank = 0;  // samples in lower bins
};

struct Search {
  std::vector<Candidate> candidates;
  std::vector<std::int32_t> slot_of_bin;  // where the next sample of a bin goes; -1 for the other bins
  std::size_t samples = 0;                // of all candidates
};

Search find_candidates(const Bins& bins, const std::vector<std::int32_t>& count, std::size_t n) {
  // Outside the occupied bins F_n is 0 or 1, and its deviation is largest at their outer edges.
  const auto occupied = [](std::int32_t samples) { return samples > 0; };
  const auto begin = static_cast<std::size_t>(std::find_if(count.begin(), count.end(), occupied) - count.begin());
  const auto end = static_cast<std::size_t>(count.rend() - std::find_if(count.rbegin(), count.rend(), occupied));
  const auto size = static_cast<Eigen::Index>(end - begin);
  const double per_sample = 1 / static_cast<double>(n);

  Eigen::ArrayXd below(size + 1);  // F_n at the edges
  std::int32_t cumulated = 0;
  below[0] = 0;
  for (Eigen::Index b = 0; b < size; ++b) {
    cumulated += count[begin + static_cast<std::size_t>(b)];
    below[b + 1] = cumulated * per_sample;
  }
  const Eigen::Map<const Eigen::ArrayXd> phi(bins.phi().data() + begin, size + 1);
  const double best = (below - phi).abs().maxCoeff();
  const Eigen::ArrayXd bound = (below.tail(size) - phi.head(size)).max(phi.tail(size) - below.head(size));

  Search search;
  search.slot_of_bin.assign(bins.count(), -1);
  std::size_t rank = 0;
  for (std::size_t b = begin; b < end; ++b) {
    const auto samples = static_cast<std::size_t>(count[b]);
    if (samples > 0 && bound[static_cast<Eigen::Index>(b - begin)] >= best - kSlack) {
      search.slot_of_bin[b] = static_cast<std::int32_t>(search.samples);
      search.candidates.push_back({search.samples, samples, rank});
      search.samples += samples;
    }
    rank += samples;
  }
  return search;
}

// Calls visit(i, bin of sample i) for all samples. Bins are computed by the block, which is vectorised, and twice in
// all rather than stored: memory of n indices costs more.
template <class SampleAt, class Visit>
void visit_bins(const Bins& bins, std::size_t n, const SampleAt& z_at, const Visit& visit) {
  constexpr std::size_t block = 512;
  std::array<std::int32_t, block> bin;
  for (std::size_t first = 0; first < n; first += block) {
    const std::size_t size = std::min(block, n - first);
    for (std::size_t i = 0; i < size; ++i) bin[i] = bins.index(z_at(first + i));
    for (std::size_t i = 0; i < size; ++i) visit(first + i, static_cast<std::size_t>(bin[i]));
  }
}

template <class SampleAt>
double by_bins(std::size_t n, const SampleAt& z_at) {
  HEADSCOPE_CHECK(n <= std::numeric_limits<std::int32_t>::max(), "{} samples", n);
  const Bins& bins = bins_for(n);
  std::vector<std::int32_t> count(bins.count());
  visit_bins(bins, n, z_at, [&](std::size_t, std::size_t bin) { ++count[bin]; });
  for (std::size_t i = 0; i < n && count[0] > 0; ++i) {
    if (std::isnan(z_at(i))) return missing;
  }
  Search search = find_candidates(bins, count, n);
  std::vector<double> z(search.samples), phi(search.samples);
  visit_bins(bins, n, z_at, [&](std::size_t i, std::size_t bin) {
    std::int32_t& slot = search.slot_of_bin[bin];
    if (slot >= 0) z[static_cast<std::size_t>(slot++)] = z_at(i);
  });
  for (const Candidate& bin : search.candidates) std::ranges::sort(std::span(z).subspan(bin.first, bin.count));
  normal_cdf(z, phi);
  double largest = 0;
  for (const Candidate& bin : search.candidates) {
    largest = std::max(largest, deviation_at(std::span(phi).subspan(bin.first, bin.count), bin.rank, n));
  }
  return largest;
}

}  // namespace

double ks_statistic(std::span<const double> x, double mean, double sd) {
  const auto z_at = [=](std::size_t i) { return (x[i] - mean) / sd; };
  if (x.empty()) return missing;
  if (x.size() > kSortAll) return by_bins(x.size(), z_at);
  std::vector<double> z(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) z[i] = z_at(i);
  return by_sorting(std::move(z));
}

}  // namespace headscope
