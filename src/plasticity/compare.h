// Two plasticity runs, head by head: by how much they differ, and whether chance explains that. In memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plasticity/dataset.h"
#include "plasticity/uncertainty.h"

namespace headscope {

// What a comparison needs of a run.
struct ComparedRun {
  std::string name;
  std::uint64_t seed = 0;
  std::map<HeadId, HeadUncertainty> heads;
};

struct HeadDifference {
  HeadId id;
  double ap_1 = 0, ap_2 = 0;
  double difference = 0;  // ap_2 - ap_1
  double standard_error = 0, low = 0, high = 0, p_value = 1;
  bool paired = false;       // both runs saw the same examples: the error is of the differences of their replicates
  bool significant = false;  // false discovery rate of 5 % over all heads (Benjamini and Hochberg 1995)
};

struct Comparison {
  std::string name_1, name_2;
  std::vector<HeadDifference> heads;  // those that both runs have
  std::size_t only_in_one = 0;
};

Comparison compare(const ComparedRun& run_1, const ComparedRun& run_2);

// Marks as significant what a false discovery rate of `rate` allows.
void control_false_discoveries(std::vector<HeadDifference>& heads, double rate);

}  // namespace headscope
