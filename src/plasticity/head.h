// The analysis of one head, from its captured queries and keys to its numbers. docs/plasticity.md defines the steps.
#pragma once

#include <string>
#include <vector>

#include "plasticity/checks.h"
#include "plasticity/dataset.h"
#include "plasticity/uncertainty.h"

namespace headscope {

struct HeadResult {
  HeadId id;
  std::int64_t n_q_tokens = 0, n_k_tokens = 0, dim = 0;
  QueryMetrics metrics;
  double ap_overall = missing;
  std::vector<CellResult> cells;
  std::vector<double> component_r2, component_weight;
  HeadUncertainty uncertainty;
  HeadChecks checks;                              // missing without the option
  std::vector<std::int64_t> constant_components;  // R² of 1 by definition
  std::int64_t q_dropped = 0, k_dropped = 0;      // vectors with NaN or infinity that were left out
  std::string q_hash, k_hash;                     // of the files
};

HeadResult analyse_head(const HeadId& id, const CapturedVectors& queries, const Keys& keys,
                        const PlasticityOptions& options, StageTimes& times);

// A head as text, for the journal of a run. Every number survives exactly.
std::string to_record(const HeadResult& head);
HeadResult from_record(const std::string& record);

}  // namespace headscope
