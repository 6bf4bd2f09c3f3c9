#include "train/setup.h"

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

}  // namespace

Setup preset_setup(const std::string& name) {
  if (name == "tiny") return tiny();
  if (name == "88m") return of_88m();
  if (name == "1.5b") return of_1_5b();
  fail_input("--preset {}: expected tiny, 88m or 1.5b", name);
}

void validate(const Setup& setup) {
  validate(setup.model);
  validate(setup.train);
  validate(setup.data);
}

Corpus load_corpus_for(const Setup& setup, Console& console) {
  const TrainOptions& train = setup.train;
  const std::int64_t wanted = train.steps() * train.tokens_per_step() + 1;
  Corpus corpus = load_corpus(setup.data, wanted,
                              tokens_for_batches(train.validation_batches, train.batch, train.seq_len), console);
  if (corpus.vocabulary > setup.model.vocabulary)
    fail_input("{}: has a vocabulary of {}, model.vocabulary is {}; set model.vocabulary={} or more", corpus.source,
               corpus.vocabulary, setup.model.vocabulary, corpus.vocabulary);
  if (corpus.unigram_entropy)
    console.info(fmt::format("data: {}; unigram entropy {:.3f} nats a token, true entropy {:.3f}", corpus.source,
                             *corpus.unigram_entropy, *corpus.true_entropy));
  else
    console.info(
        fmt::format("data: {}, {:.1f} M tokens", corpus.source, static_cast<double>(corpus.train.size()) / 1e6));
  if (wanted - 1 > corpus.train.size())
    console.info(fmt::format("the data is shorter than the run: it is read {:.1f} times",
                             static_cast<double>(wanted - 1) / static_cast<double>(corpus.train.size())));
  return corpus;
}

Corpus load_held_out(const Setup& setup, Console& console) {
  const TrainOptions& train = setup.train;
  Corpus corpus = load_corpus(setup.data, /*wanted_train_tokens=*/1,
                              tokens_for_batches(train.validation_batches, train.batch, train.seq_len), console);
  if (corpus.vocabulary > setup.model.vocabulary)
    fail_input("{}: has a vocabulary of {}, the checkpoint's is {}; give data of its tokenizer", corpus.source,
               corpus.vocabulary, setup.model.vocabulary);
  return corpus;
}

}  // namespace headscope
