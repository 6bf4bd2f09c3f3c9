#include "experiments/setup.h"

#include "core/bounds.h"
#include "data/blocks.h"

namespace headscope {
namespace {

// Learns the embedded language in under a minute on two cores.
Setup tiny() {
  return {};
}

// The source study's training (seed 004): 4 sequences a forward step, 2 forward steps an update, a probe every 120.
Setup source_study() {
  Setup setup;
  setup.model.vocabulary = 49152;
  setup.train.seq_len = 2048;
  setup.train.batch = 4;
  setup.train.accumulation = 2;
  setup.train.tokens = 50'000'000;
  setup.train.probe_every = 120;
  setup.train.checkpoint_every = 500;
  return setup;
}

Setup of_88m() {
  Setup setup = source_study();
  setup.preset = "88m";
  setup.model.d_model = 512;
  setup.model.layers = 22;
  setup.model.heads = 8;
  setup.model.kv_heads = 4;
  setup.model.d_k = 64;
  setup.model.d_ff = 2048;
  setup.train.optim.muon_lr = 0.024;
  setup.train.optim.adamw_lr = 0.006;
  return setup;
}

Setup of_1_5b() {
  Setup setup = source_study();
  setup.preset = "1.5b";
  setup.model.d_model = 2048;
  setup.model.layers = 32;
  setup.model.heads = 16;
  setup.model.kv_heads = 8;
  setup.model.d_k = 128;
  setup.model.d_ff = 8192;
  setup.train.optim.muon_lr = 0.012;
  setup.train.optim.adamw_lr = 0.003;
  return setup;
}

// What a run reads of its data.
struct Wanted {
  std::int64_t train = 0, validation = 0;  // tokens
};

Wanted wanted_of(const TrainOptions& train) {
  return {train.steps() * train.tokens_per_step() + 1,
          tokens_for_batches(train.validation_batches, train.batch, train.seq_len)};
}

void check_vocabulary(const Setup& setup, const Corpus& corpus) {
  if (corpus.vocabulary > setup.model.vocabulary)
    fail_input("{}: has a vocabulary of {}, model.vocabulary is {}; set model.vocabulary={} or more", corpus.source,
               corpus.vocabulary, setup.model.vocabulary, corpus.vocabulary);
}

void check_enough_validation(const TrainOptions& train, const Corpus& corpus) {
  check_fixed_batches(corpus.validation.size(), train.validation_batches, train.batch, train.seq_len);
}

// Everything that can be refused of a corpus that is read to its end, or as far as a run wants it.
void check_fits(const Setup& setup, const Corpus& corpus) {
  check_vocabulary(setup, corpus);
  check_block(corpus.train.size(), setup.train.seq_len);
  check_enough_validation(setup.train, corpus);
}

}  // namespace

Setup preset_setup(const std::string& name) {
  const std::array presets = {tiny(), of_88m(), of_1_5b()};
  std::vector<std::string> known;
  for (const Setup& setup : presets) {
    if (setup.preset == name) return setup;
    known.push_back(setup.preset);
  }
  fail_input("{}", unknown_name("preset", name, known));
}

void validate(const Setup& setup) {
  validate(setup.model);
  validate(setup.train);
  if (!setup.model.qk_norm && setup.train.qk_gain == QkGain::fixed)
    fail_input(
        "train.qk_gain is fixed and model.qk_norm is false; without QK-Norm there is no gain: leave train.qk_gain out");
  validate(setup.data);
  check_size("threads", setup.threads, 0, most_threads);
}

Corpus load_corpus_for(const Setup& setup, Console& console) {
  const Wanted wanted = wanted_of(setup.train);
  Corpus corpus = load_corpus(setup.data, wanted.train, wanted.validation, console);
  check_fits(setup, corpus);
  if (corpus.unigram_entropy)
    console.info(fmt::format("data: {}; unigram entropy {:.3f} nats a token, true entropy {:.3f}", corpus.source,
                             *corpus.unigram_entropy, *corpus.true_entropy));
  else
    console.info(
        fmt::format("data: {}, {:.1f} M tokens", corpus.source, static_cast<double>(corpus.train.size()) / 1e6));
  if (wanted.train - 1 > corpus.train.size())
    console.info(fmt::format("the data is shorter than the run: it is read {:.1f} times",
                             static_cast<double>(wanted.train - 1) / static_cast<double>(corpus.train.size())));
  return corpus;
}

void check_corpus_for(const Setup& setup) {
  const Corpus start = start_of_corpus(setup.data, setup.train.seq_len + 1, wanted_of(setup.train).validation);
  if (start.cut)
    check_vocabulary(setup, start);
  else
    check_fits(setup, start);
}

Corpus load_held_out(const Setup& setup, Console& console) {
  Corpus corpus = load_corpus(setup.data, /*wanted_train_tokens=*/1, wanted_of(setup.train).validation, console);
  if (corpus.vocabulary > setup.model.vocabulary)
    fail_input("{}: has a vocabulary of {}, the checkpoint's is {}; give data of its tokenizer", corpus.source,
               corpus.vocabulary, setup.model.vocabulary);
  check_enough_validation(setup.train, corpus);
  return corpus;
}

}  // namespace headscope
