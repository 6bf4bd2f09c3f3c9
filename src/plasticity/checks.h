// Whether a head's plasticity can be trusted: the same comparisons counted over the captured queries instead of
// modelled, over those of the keys' own text and of other texts, and with positions shuffled within texts. The source
// document does not define these; docs/plasticity.md does.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/missing.h"
#include "plasticity/influence.h"
#include "plasticity/preferences.h"
#include "plasticity/uncertainty.h"

namespace headscope {

struct HeadChecks {
  double ap_empirical = missing;
  double ap_gap = missing;  // ap_overall - ap_empirical
  double ap_own_text = missing;
  double ap_shuffled = missing;
  double ap_other_text = missing;
  double ks_d = missing, lilliefors_p = missing;
  double ap_gap_se = missing;
  double ap_shuffled_gap_se = missing;  // of ap_overall - ap_shuffled
  double ap_text_gap_se = missing;      // of ap_own_text - ap_other_text
  std::int64_t own_text_pairs = 0;
  double own_text_queries = missing;  // mean over these pairs: queries of the own text in the bucket
};

// The checks that count queries, from the cells of a head as they are evaluated.
class PairChecks {
 public:
  PairChecks(const CapturedVectors& captured, const Queries& queries, const Keys& keys);

  void add(const CellPairs& cell);

  // Fills in what the cells added give. `from_queries` is what the queries of each text move of ap_overall.
  void finish(double ap_overall, const TextSums& from_queries, HeadChecks& checks);

 private:
  // Mean over cells of a mean over pairs.
  struct Mean {
    double sum = 0, weight = 0;
    [[nodiscard]] double value() const { return weight > 0 ? sum / weight : missing; }
  };

  void add_gap(const CellPairs& cell, const BucketQueries::Counts& halves_tp);
  void add_texts(const CellPairs& cell, const BucketQueries::Counts& halves_tp);
  [[nodiscard]] std::int64_t text_of(const CellPairs& cell, std::size_t pair) const;

  const CapturedVectors& captured_;
  const Queries& queries_;
  const Keys& keys_;
  std::optional<BucketQueries> bucket_;
  std::int64_t bucket_number_ = -1;
  Mean empirical_, own_, other_;
  std::int64_t own_text_pairs_ = 0, own_text_queries_ = 0;  // the queries summed over the pairs
  TextSums gap_, text_gap_;                                 // influences, times the weight of all cells
  TextSums text_weight_;  // of the keys' texts in the comparison of own and other texts
};

// What a head's value is when positions and buckets are shuffled within texts, queries and keys each on their own, and
// everything but the tests of normality is done again. `uncertainty` is that of the head as captured; the queries of
// `captured` are the generator's to shuffle.
void check_shuffled(const CapturedVectors& captured, const Keys& keys, const PlasticityOptions& options,
                    NumpyGenerator shuffle, NumpyGenerator pairs, const HeadUncertainty& uncertainty,
                    HeadChecks& checks);

}  // namespace headscope
