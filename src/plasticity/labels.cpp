#include "plasticity/labels.h"

#include <unordered_map>

namespace headscope {

ShuffledLabels::ShuffledLabels(const CapturedVectors& captured, NumpyGenerator& generator)
    : bucket_(captured.rows), position_(captured.rows) {
  std::unordered_map<std::int64_t, std::size_t> place;
  std::vector<std::vector<std::size_t>> rows_of_text;
  for (std::size_t row = 0; row < captured.rows; ++row) {
    const auto [entry, is_new] = place.try_emplace(captured.example_id[row], rows_of_text.size());
    if (is_new) rows_of_text.emplace_back();
    rows_of_text[entry->second].push_back(row);
  }
  for (const std::vector<std::size_t>& rows : rows_of_text) {
    const auto count = static_cast<std::int64_t>(rows.size());
    const std::vector<std::int64_t> order = generator.choice(count, count);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t from = rows[static_cast<std::size_t>(order[i])];
      bucket_[rows[i]] = captured.bucket[from];
      position_[rows[i]] = captured.position[from];
    }
  }
}

NumpyGenerator shuffle_generator(std::uint64_t seed, std::int64_t layer, std::int64_t head, Side side) {
  const std::uint64_t of_head =
      mixed_seed(mixed_seed(seed, static_cast<std::uint64_t>(layer)), static_cast<std::uint64_t>(head));
  return NumpyGenerator(mixed_seed(of_head, static_cast<std::uint64_t>(side)));
}

}  // namespace headscope
