// What a study is made of: one model, one way of training, one corpus; and its presets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/corpus.h"
#include "model/decoder_config.h"
#include "train/options.h"
#include "verdict/verdict.h"

namespace headscope {

struct StudyOptions {
  std::string preset = "tiny";
  DecoderConfig model;
  TrainOptions train;
  DataOptions data;
  std::string seeds = "42";  // as in the source study
  std::string conditions = "QK,QK_frozen,NoQK";
  double tau = default_tau;  // smaller differences of the mean key PR count as none
  std::string device = "auto";

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("preset", self.preset, "What the other keys start from: tiny, 88m or 1.5b");
    DecoderConfig::fields(self.model, visit);
    TrainOptions::fields(self.train, visit);
    DataOptions::fields(self.data, visit);
    visit("study.seeds", self.seeds, "Seeds of weights and order of the data, comma-separated");
    visit("study.conditions", self.conditions, "Conditions to train, comma-separated");
    visit("study.tau", self.tau, "Smaller differences of the mean key PR count as none");
    visit("device", self.device, "auto, cpu or cuda");
  }
};

// Throws Error(Fault::input) naming those there are.
StudyOptions study_preset(const std::string& name);

// The preset that the entries name (or tiny), then the entries in their order.
StudyOptions resolve_study(const std::vector<ConfigEntry>& entries);

// Throws Error(Fault::input) naming the key on values that make no sense.
void validate(const StudyOptions& options);

std::vector<std::uint64_t> seeds_of(const StudyOptions& options);

// Indices into condition_tags, ascending.
std::vector<std::size_t> conditions_of(const StudyOptions& options);

}  // namespace headscope
