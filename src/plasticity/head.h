// The analysis of one head, from two files to its rows in the tables. The steps are those of docs/plasticity.md.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/missing.h"
#include "plasticity/cells.h"
#include "plasticity/dataset.h"
#include "plasticity/keys.h"
#include "plasticity/queries.h"
#include "plasticity/uncertainty.h"

namespace headscope {

struct CellResult {
  std::int64_t q_bucket = 0, k_bucket = 0, n_pairs = 0, n_examples = 0;
  double plasticity = missing, se_pairs = missing, se_examples = missing;
};

struct HeadResult {
  HeadId id;
  std::int64_t n_q_tokens = 0, n_k_tokens = 0, dim = 0;
  QueryMetrics metrics;
  double ap_overall = missing;
  std::vector<CellResult> cells;
  std::vector<double> component_r2, component_weight;
  Estimate overall, first_20, last_20, drop;
  std::int64_t n_examples = 0;
  std::string examples_hash;                      // of the set of examples behind the pairs
  std::vector<double> replicates;                 // ap_overall in each bootstrap replicate
  std::vector<std::int64_t> constant_components;  // R² of 1 by definition
  std::int64_t q_dropped = 0, k_dropped = 0;      // vectors with NaN or infinity that were left out
  std::string q_hash, k_hash;                     // of the files
};

HeadResult analyse_head(const HeadId& id, const CapturedVectors& queries, const Keys& keys,
                        const PlasticityOptions& options, StageTimes& times);

// The record of a head in the journal of a run; numbers survive exactly.
std::string to_record(const HeadResult& result);
HeadResult from_record(const std::string& record);

}  // namespace headscope
