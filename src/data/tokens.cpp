#include "data/tokens.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace headscope {

Tokens::Tokens(std::shared_ptr<const void> owner, TokenSpan store, std::span<const TokenRange> ranges)
    : owner_(std::move(owner)), store_(store) {
  const auto stored = std::visit([](auto tokens) { return static_cast<std::int64_t>(tokens.size()); }, store_);
  starts_.push_back(0);
  for (const TokenRange& range : ranges) {
    HEADSCOPE_CHECK(range.first >= 0 && range.count > 0 && range.count <= stored - range.first, "range {} + {} of {}",
                    range.first, range.count, stored);
    if (!ranges_.empty() && ranges_.back().first + ranges_.back().count == range.first) {
      ranges_.back().count += range.count;
      starts_.back() += range.count;
    } else {
      ranges_.push_back(range);
      starts_.push_back(starts_.back() + range.count);
    }
  }
}

void Tokens::copy(std::int64_t first, std::int64_t count, std::int64_t* out) const {
  HEADSCOPE_CHECK(first >= 0 && count >= 0 && count <= size() - first, "tokens {} + {} of {}", first, count, size());
  auto range = static_cast<std::size_t>(std::upper_bound(starts_.begin(), starts_.end(), first) - starts_.begin()) - 1;
  for (; count > 0; ++range) {
    const std::int64_t skipped = first - starts_[range];
    const std::int64_t here = std::min(count, ranges_[range].count - skipped);
    std::visit([&](auto tokens) { out = std::copy_n(tokens.data() + ranges_[range].first + skipped, here, out); },
               store_);
    first += here;
    count -= here;
  }
}

double unigram_entropy(const Tokens& tokens, std::int64_t vocabulary) {
  constexpr std::int64_t most = std::int64_t{1} << 27, block = 1 << 16;
  const std::int64_t size = std::min(tokens.size(), most);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(block)), counts(static_cast<std::size_t>(vocabulary));
  for (std::int64_t first = 0; first < size; first += block) {
    const std::int64_t count = std::min(block, size - first);
    tokens.copy(first, count, ids.data());
    for (std::int64_t i = 0; i < count; ++i) ++counts.at(static_cast<std::size_t>(ids[static_cast<std::size_t>(i)]));
  }
  double entropy = 0;
  for (const std::int64_t count : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(size);
    if (count > 0) entropy -= share * std::log(share);
  }
  return entropy;
}

TokenBuffer::TokenBuffer(std::int64_t vocabulary) {
  if (needs_four_bytes(vocabulary)) tokens_.emplace<std::vector<std::uint32_t>>();
}

void TokenBuffer::append(std::span<const std::uint32_t> tokens) {
  std::visit(
      [&](auto& all) {
        using Stored = typename std::decay_t<decltype(all)>::value_type;
        for (const std::uint32_t token : tokens) all.push_back(static_cast<Stored>(token));
      },
      tokens_);
}

std::int64_t TokenBuffer::size() const {
  return std::visit([](const auto& all) { return static_cast<std::int64_t>(all.size()); }, tokens_);
}

TokenSpan TokenBuffer::span() const {
  return std::visit([](const auto& all) { return TokenSpan(std::span(all)); }, tokens_);
}

}  // namespace headscope
