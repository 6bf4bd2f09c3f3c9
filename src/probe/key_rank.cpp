#include "probe/key_rank.h"

#include "stats/spectrum.h"

namespace headscope {

std::vector<double> key_participation_ratios(const at::Tensor& k_bthd) {
  const std::int64_t heads = k_bthd.size(2), d = k_bthd.size(3);
  const at::Tensor k_hnd = k_bthd.detach().flatten(0, 1).transpose(0, 1).to(at::kDouble);
  const at::Tensor gram_hdd = at::bmm(k_hnd.mT(), k_hnd).cpu().contiguous();
  std::vector<double> ratios;
  for (std::int64_t head = 0; head < heads; ++head) {
    const std::span<const double> gram(gram_hdd.const_data_ptr<double>() + head * d * d,
                                       static_cast<std::size_t>(d * d));
    ratios.push_back(participation_ratio(singular_values_of_gram(gram, d)));
  }
  return ratios;
}

}  // namespace headscope
