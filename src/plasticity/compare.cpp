#include "plasticity/compare.h"

#include <algorithm>
#include <cmath>

#include "stats/distributions.h"

namespace headscope {
namespace {

double paired_error(const HeadUncertainty& head_1, const HeadUncertainty& head_2) {
  Eigen::Map<const Eigen::ArrayXd> first(head_1.replicates.data(), static_cast<Eigen::Index>(head_1.replicates.size()));
  Eigen::Map<const Eigen::ArrayXd> second(head_2.replicates.data(), first.size());
  return sample_deviation(second - first);
}

HeadDifference difference_of(const HeadId& id, const HeadUncertainty& head_1, const HeadUncertainty& head_2,
                             bool same_seed) {
  HeadDifference result;
  result.id = id;
  result.ap_1 = head_1.overall.value;
  result.ap_2 = head_2.overall.value;
  result.difference = result.ap_2 - result.ap_1;
  // Both runs resampled the same examples in the same way: noise that they share cancels in the differences.
  result.paired = same_seed && head_1.examples_hash == head_2.examples_hash && !head_1.replicates.empty() &&
                  head_1.replicates.size() == head_2.replicates.size();
  result.standard_error = result.paired ? paired_error(head_1, head_2)
                                        : std::hypot(head_1.overall.standard_error(), head_2.overall.standard_error());
  const Estimate estimate{result.difference, result.standard_error, missing};
  result.low = estimate.low();
  result.high = estimate.high();
  if (std::isnan(result.standard_error))
    result.p_value = missing;
  else if (result.standard_error > 0)
    result.p_value = 2 * normal_cdf(-std::abs(result.difference) / result.standard_error);
  else
    result.p_value = result.difference == 0 ? 1 : 0;
  return result;
}

}  // namespace

void control_false_discoveries(std::vector<HeadDifference>& heads, double rate) {
  std::vector<HeadDifference*> tested;
  for (HeadDifference& head : heads)
    if (!std::isnan(head.p_value)) tested.push_back(&head);
  std::sort(tested.begin(), tested.end(), [](const auto* a, const auto* b) { return a->p_value < b->p_value; });
  std::size_t accepted = 0;  // the largest i with p_(i) <= rate i / m
  for (std::size_t i = 1; i <= tested.size(); ++i)
    if (tested[i - 1]->p_value <= rate * static_cast<double>(i) / static_cast<double>(tested.size())) accepted = i;
  for (std::size_t i = 0; i < accepted; ++i) tested[i]->significant = true;
}

Comparison compare(const ComparedRun& run_1, const ComparedRun& run_2) {
  Comparison comparison{run_1.name, run_2.name, {}, 0};
  for (const auto& [id, head_1] : run_1.heads) {
    const auto head_2 = run_2.heads.find(id);
    if (head_2 == run_2.heads.end()) continue;
    comparison.heads.push_back(difference_of(id, head_1, head_2->second, run_1.seed == run_2.seed));
  }
  comparison.only_in_one = run_1.heads.size() + run_2.heads.size() - 2 * comparison.heads.size();
  control_false_discoveries(comparison.heads, 0.05);
  return comparison;
}

}  // namespace headscope
