// The groups other_rank and score of every layer of a forward pass, and how far each measure of rank depends on the
// sequences that were drawn.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probe/ranks.h"

namespace headscope {

// Jackknife standard errors over the sequences of a batch, of k_pr and the chosen measures of the group other_rank: of
// the mean over layers and heads, and of the mean over the heads of each layer. NaN with one sequence.
struct RankErrors {
  std::map<std::string, double> mean;
  std::map<std::string, std::vector<double>> layers;
};

// Does nothing where none of the two groups is chosen. On a GPU it waits for nothing before add_to(), but for errors:
// then every layer goes to the CPU when it is observed, so that the sums by sequence of one layer are in memory.
class RankProbe {
 public:
  // `gains`: of the model; `with_errors`: of measures of rank, if any is chosen.
  RankProbe(const MetricSelection& chosen, Gains gains, bool with_errors);

  // The layers in order.
  void observe(const HeadVectors& vectors);
  // Adds what is chosen to the values of each layer, which have k_pr if that is chosen.
  void add_to(std::vector<HeadValues>& layers);
  // Of the layers that were observed. Empty: not asked for, or no measure of rank is chosen.
  [[nodiscard]] std::optional<RankErrors> errors() const;

 private:
  void add_replicates(const RankSums& by_sequence);

  Gains gains_;
  RankMeasures ranks_;  // chosen ones of the group other_rank
  bool with_spreads_ = false;
  bool with_errors_ = false;
  std::vector<RankSums> layers_;                                        // over all sequences
  std::vector<at::Tensor> spreads_;                                     // score_std of each layer
  std::map<std::string, std::vector<std::vector<double>>> replicates_;  // by measure: [layer][sequence left out]
};

}  // namespace headscope
