// Attention plasticity of every head of a dataset, in memory: no run folder, no console, no output file. Heads are
// independent of each other; workers analyse them in parallel.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plasticity/head.h"

namespace headscope {

struct HeadFailure {
  HeadId id;
  std::string message;
  std::string reason;  // the message without the name of the file: what heads may share
};

struct PlasticityResult {
  PlasticityOptions options;
  std::vector<HeadResult> heads;      // in order of layer and query head
  std::vector<HeadFailure> failures;  // heads whose files could not be used, in the same order
  StageTimes times;
};

// Calls out of a computation. Workers call at the same time, from any thread. An exception ends the computation and
// reaches the caller of compute_plasticity.
struct PlasticityObserver {
  std::function<void(std::size_t left)> started = [](std::size_t) {};  // once: the number of heads to analyse
  std::function<void()> before_head = [] {};
  std::function<void(const HeadResult&)> finished = [](const HeadResult&) {};
  std::function<void(const HeadFailure&)> failed = [](const HeadFailure&) {};
};

// `finished` are heads that an earlier computation with the same options finished; they are part of the result and are
// not analysed again. Memory holds the result, and the vectors of as many heads as there are workers.
PlasticityResult compute_plasticity(const PlasticityOptions& options, const Dataset& dataset,
                                    const PlasticityObserver& observer = {}, std::vector<HeadResult> finished = {});

// Mean, median and ends of ap_overall.
struct HeadRange {
  double mean = 0, median = 0;
  const HeadResult* lowest = nullptr;  // points into the heads
  const HeadResult* highest = nullptr;
};

// Of the heads that have a plasticity; nothing when none has.
std::optional<HeadRange> range_of(const std::vector<HeadResult>& heads);

}  // namespace headscope
