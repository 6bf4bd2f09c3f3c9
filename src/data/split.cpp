#include "data/split.h"

#include <xxhash.h>

#include "core/error.h"

namespace headscope {

std::uint64_t split_hash(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t split_hash(std::span<const std::uint32_t> tokens) {
  return XXH3_64bits(tokens.data(), tokens.size_bytes());
}

std::uint64_t piece_hash(std::uint64_t document_hash, std::uint64_t piece) {
  return piece == 0 ? document_hash : XXH3_64bits_withSeed(&document_hash, sizeof document_hash, piece);
}

bool in_validation(std::uint64_t hash, double validation_share) {
  return static_cast<double>(hash >> 11) * 0x1p-53 < validation_share;
}

SplitRanges::SplitRanges(double validation_share, const WantedTokens& wanted) : share_(validation_share) {
  train_.keeps = wanted.keeps_train;
  train_.wanted = wanted.train;
  if (share_ > 0 && share_ < 1) train_.least = 2;  // one may have to go to validation, and one must be left
  validation_.wanted = wanted.validation;
  validation_.most = wanted.most_validation;
}

void SplitRanges::Part::add(TokenRange range) {
  if (keeps) ranges.push_back(range);
  ++pieces;
  tokens += range.count;
}

bool SplitRanges::in_validation(std::uint64_t hash) const {
  return headscope::in_validation(hash, share_);
}

bool SplitRanges::wants(std::uint64_t hash) const {
  if (in_validation(hash)) return validation_.takes_more();
  const bool may_be_moved = share_ > 0 && validation_.ranges.empty() && (!smallest_ || hash < smallest_->hash);
  return (train_.keeps && !train_.full()) || may_be_moved;
}

void SplitRanges::add(std::uint64_t hash, TokenRange range) {
  if (in_validation(hash)) {
    if (validation_.takes_more()) validation_.add(range);
    return;
  }
  if (!smallest_ || hash < smallest_->hash) smallest_ = Candidate{hash, range};
  if (!train_.full()) train_.add(range);
}

bool SplitRanges::full() const {
  // One piece of training must be there, or finish() would take it from validation.
  if (!train_.keeps && share_ > 0 && !validation_.takes_more() && train_.pieces > 0) return true;
  return train_.full() && (share_ == 0 || validation_.full());
}

void SplitRanges::finish(std::string_view origin) {
  if (share_ == 0 || share_ == 1 || validation_.wanted == 0) return;
  const auto refuse = [&](const TokenRange& only) {
    fail_input("{}: one document of {} tokens cannot be split; name other data for validation (data.validation)",
               origin, only.count);
  };
  if (validation_.ranges.empty()) {
    if (train_.pieces < train_.least) refuse(smallest_->range);
    validation_.add(smallest_->range);
    std::erase_if(train_.ranges, [&](const TokenRange& range) { return range.first == smallest_->range.first; });
  } else if (train_.pieces == 0) {
    if (validation_.ranges.size() == 1) refuse(validation_.ranges.front());
    train_.add(validation_.ranges.back());
    validation_.ranges.pop_back();
  }
}

}  // namespace headscope
