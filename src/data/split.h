// The training and the validation part of a corpus, by hash: the part of a document depends on the document alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "data/tokens.h"

namespace headscope {

// Longer documents are split in pieces of so many tokens, so that one book can give both parts.
inline constexpr std::int64_t longest_piece = 16384;

// XXH3 of the bytes, or of the ids as 32-bit numbers.
std::uint64_t split_hash(std::string_view bytes);
std::uint64_t split_hash(std::span<const std::uint32_t> tokens);
// Of the piece of that index of a document; the document's own for the first.
std::uint64_t piece_hash(std::uint64_t document_hash, std::uint64_t piece);

// Whether a piece of this hash belongs to validation.
bool in_validation(std::uint64_t hash, double validation_share);

// How much of the data is read.
struct WantedTokens {
  std::int64_t train = 0, validation = 0;
  // Where reading goes on for another reason, validation takes what comes up to so many tokens.
  std::int64_t most_validation = 0;
  bool keeps_train = true;  // false: training is counted only, and reading ends where validation takes no more
  std::int64_t range = 0;   // of a document, for Corpus::documents_beyond_range; 0: any number
};

// Takes pieces until both parts have the wanted number of tokens. A larger number only appends to its part. The number
// wanted of one part does not change the other part, unless that takes what comes (most_validation).
class SplitRanges {
 public:
  // A share of 0 leaves validation empty, one of 1 training.
  SplitRanges(double validation_share, const WantedTokens& wanted);

  // Whether the tokens of a piece of this hash are to be kept.
  [[nodiscard]] bool wants(std::uint64_t hash) const;
  // Every piece, also those whose tokens are not kept.
  void add(std::uint64_t hash, TokenRange range);
  [[nodiscard]] bool full() const;
  // After the last piece, of which there was one at least. Where none fell into validation, the one with the smallest
  // hash goes there. `origin` names the data when there is only one piece, which is an input error.
  void finish(std::string_view origin);

  [[nodiscard]] const std::vector<TokenRange>& train() const { return train_.ranges; }
  [[nodiscard]] const std::vector<TokenRange>& validation() const { return validation_.ranges; }

 private:
  struct Part {
    std::vector<TokenRange> ranges;  // empty where pieces are counted only
    bool keeps = true;
    std::size_t pieces = 0;
    std::int64_t wanted = 0, tokens = 0;
    std::int64_t most = 0;  // tokens that are taken where they come, at least `wanted`
    std::size_t least = 0;  // pieces
    [[nodiscard]] bool full() const { return tokens >= wanted && pieces >= least; }
    [[nodiscard]] bool takes_more() const { return !full() || tokens < most; }
    void add(TokenRange range);
  };
  struct Candidate {
    std::uint64_t hash;
    TokenRange range;
  };

  [[nodiscard]] bool in_validation(std::uint64_t hash) const;

  double share_;
  Part train_, validation_;
  std::optional<Candidate> smallest_;  // of the training part or left out of it
};

}  // namespace headscope
