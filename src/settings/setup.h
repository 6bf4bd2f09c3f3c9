// What a model is trained with: its shape, the training, the data; and the presets that they start from.
#pragma once

#include <string>
#include <vector>

#include "data/corpus.h"
#include "settings/decoder_config.h"
#include "settings/train_options.h"

namespace headscope {

struct Setup {
  std::string preset = "tiny";
  DecoderConfig model;
  TrainOptions train;
  DataOptions data;
  std::string device = "auto";
  std::int64_t threads = 0;  // of the CPU; 0: all cores

  static std::span<const UsualWord> usual_words();

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("preset", self.preset, "What the other keys start from: tiny, 88m or 1.5b");
    DecoderConfig::fields(self.model, visit);
    TrainOptions::fields(self.train, visit);
    DataOptions::fields(self.data, visit);
    visit("device", self.device, "auto, cpu or cuda (cuda:1: the second GPU)");
    visit("threads", self.threads, "Threads on the CPU; 0: all cores", SizeRange{0, most_threads, "threads"});
  }
};

// Throws Error(Fault::input) naming the nearest one, or those there are.
Setup preset_setup(const std::string& name);

// The entries in the words of this version. Earlier ones had one key for two choices: model.qk_norm was learned, frozen
// or none.
std::vector<ConfigEntry> in_current_words(std::span<const ConfigEntry> entries);
// The same of the whole configuration of a run. Keys that came later get the values that the run had.
nlohmann::ordered_json in_current_words(nlohmann::ordered_json config);

// What a run that goes on may have otherwise: no number of it depends on them, but for the order in which gradients are
// added, of which a warning tells (experiments/train_run.cpp).
inline std::vector<std::string> free_keys_of_training() {
  return {"threads", "train.recompute", "ranks.backend", "ranks.timeout"};
}

// The vocabulary of a tokenizer that is not that of bytes is the model's, unless the entries say another. Throws
// Error(Fault::input) when the tokenizer cannot be read.
void take_vocabulary(Setup& setup, std::span<const ConfigEntry> entries);

// The preset that the entries name (or tiny), then the entries in their order. Options is a Setup, perhaps with more.
template <class Options>
Options resolve_setup(const std::vector<ConfigEntry>& entries) {
  std::string preset = "tiny";
  for (const ConfigEntry& entry : entries)
    if (entry.key == "preset") preset = entry.value;
  Options options;
  static_cast<Setup&>(options) = preset_setup(preset);
  for (const ConfigEntry& entry : in_current_words(entries))
    if (entry.key != "preset") apply(options, entry);
  take_vocabulary(options, entries);
  return options;
}

// Throws Error(Fault::input) naming the key on values that make no sense.
void validate(const Setup& setup);

// What a user may not expect of the setup, a sentence each: tokens that are left out, heads that are not as wide as the
// residual stream.
std::vector<std::string> notices(const Setup& setup);

// What the run needs of the data; says on the console what it is, and how often the run goes through it. Throws
// Error(Fault::input) when its vocabulary is larger than the model's, or it has not tokens enough.
Corpus load_corpus_for(const Setup& setup, Console& console);

// Throws what load_corpus_for would, as far as the start of the data tells: reads some megabytes at most.
void check_corpus_for(const Setup& setup);

// The validation part for a model that is trained, as training had it; nothing or next to nothing is kept of the
// training part. A warning counts the documents that are longer than the model's range. Throws Error(Fault::input) when
// its vocabulary is larger than the model's, or it has not tokens enough.
Corpus load_held_out(const Setup& setup, Console& console);

}  // namespace headscope
