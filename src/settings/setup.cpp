#include "settings/setup.h"

#include "core/bounds.h"
#include "core/text.h"
#include "data/blocks.h"
#include "data/text_tokenizer.h"
#include "data/tokens.h"

namespace headscope {
namespace {

// The source study's training (seed 004): 4 sequences a forward step, 2 forward steps an update, a probe every 120.
Setup source_study(const char* name, const DecoderConfig& model, double muon_lr, double adamw_lr) {
  Setup setup;
  setup.preset = name;
  setup.model = model;
  setup.train.seq_len = 2048;
  setup.train.batch = 4;
  setup.train.accumulation = 2;
  setup.train.tokens = 50'000'000;
  setup.train.probe_every = 120;
  setup.train.checkpoint_every = 500;
  setup.train.optim.muon_lr = muon_lr;
  setup.train.optim.adamw_lr = adamw_lr;
  return setup;
}

std::array<Setup, 3> all_presets() {
  const DecoderConfig of_88m{
      .vocabulary = 49152, .d_model = 512, .layers = 22, .heads = 8, .kv_heads = 4, .d_k = 64, .d_ff = 2048};
  const DecoderConfig of_1_5b{
      .vocabulary = 49152, .d_model = 2048, .layers = 32, .heads = 16, .kv_heads = 8, .d_k = 128, .d_ff = 8192};
  return {Setup(),  // tiny: learns the embedded language in under a minute on two cores
          source_study("88m", of_88m, 0.024, 0.006), source_study("1.5b", of_1_5b, 0.012, 0.003)};
}

// What a run reads of its data.
WantedTokens wanted_of(const Setup& setup) {
  constexpr std::int64_t most_sampled = 1 << 22;  // tokens: a second or two to read, thousands of documents
  const TrainOptions& train = setup.train;
  return {.train = train.steps() * train.tokens_per_step() + 1,
          .validation = tokens_for_batches(train.validation_batches, train.batch, train.seq_len),
          .most_validation = setup.data.validation_sample ? most_sampled : 0};
}

void check_vocabulary(const Setup& setup, const Corpus& corpus) {
  if (corpus.vocabulary > setup.model.vocabulary)
    fail_input("{}: has a vocabulary of {}, model.vocabulary is {}; set model.vocabulary={} or more", corpus.source,
               corpus.vocabulary, setup.model.vocabulary, corpus.vocabulary);
}

void check_enough_validation(const TrainOptions& train, const Corpus& corpus) {
  check_fixed_batches(corpus.validation.size(), train.validation_batches, train.batch, train.seq_len);
}

// A special token that the model has no embedding of may be in the tokenizer, not in the text.
void check_ids(const Corpus& corpus, std::int64_t vocabulary) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(corpus.validation.size()));
  corpus.validation.copy(0, corpus.validation.size(), ids.data());
  for (const std::int64_t id : ids)
    if (id >= vocabulary)
      fail_input("{}: has a vocabulary of {}, and token {} is beyond the checkpoint's, {}; give data of its tokenizer",
                 corpus.source, corpus.vocabulary, id, vocabulary);
}

// Everything that can be refused of a corpus that is read to its end, or as far as a run wants it.
void check_fits(const Setup& setup, const Corpus& corpus) {
  check_vocabulary(setup, corpus);
  check_block(corpus.train.size(), setup.train.seq_len);
  check_enough_validation(setup.train, corpus);
}

struct OldWord {
  std::string_view word;
  bool qk_norm;
  const char* qk_gain;
};
constexpr std::array<OldWord, 3> old_words = {
    {{"learned", true, "learned"}, {"frozen", true, "fixed"}, {"none", false, "learned"}}};

const OldWord* old_word(std::string_view word) {
  const auto found = std::ranges::find(old_words, word, &OldWord::word);
  return found == old_words.end() ? nullptr : &*found;
}

// A key that runs of earlier versions do not have, and what they did. It is not today's default, which may change.
struct LaterKey {
  const char *part, *key;
  nlohmann::ordered_json value_before;
};

const std::vector<LaterKey>& later_keys() {
  static const std::vector<LaterKey> keys = {
      {"train", "deterministic", false},
      {"train", "recompute", false},
      {"model", "qk_gain", "vector"},
      {"model", "qk_scale", 1.0},
      {"optim", "gain_decay", "weight_decay"},
      {"optim", "gain_decay_target", 0.0},
      {"optim", "embedding_decay", "weight_decay"},
      {"data", "validation_sample", false},
      {"study", "own_conditions", ""},
  };
  return keys;
}

constexpr UsualWord words[] = {{"lr", "optim.muon_lr"},
                               {"lr", "optim.adamw_lr"},
                               {"learning_rate", "optim.muon_lr"},
                               {"learning_rate", "optim.adamw_lr"},
                               {"warmup", "optim.warmup_steps"},
                               {"min_lr", "optim.final_share"},
                               {"lr_schedule", "optim.schedule"},
                               {"adam_eps", "optim.eps"},
                               {"steps", "train.tokens"},
                               {"max_steps", "train.tokens"},
                               {"epochs", "train.tokens"},
                               {"max_tokens", "train.tokens"},
                               {"batch_size", "train.batch"},
                               {"context", "train.seq_len"},
                               {"context_length", "train.seq_len"},
                               {"block_size", "train.seq_len"},
                               {"max_length", "train.seq_len"},
                               {"sequence_length", "train.seq_len"},
                               {"grad_accum", "train.accumulation"},
                               {"gradient_accumulation_steps", "train.accumulation"},
                               {"grad_clip", "train.clip"},
                               {"max_grad_norm", "train.clip"},
                               {"penalty", "train.max_abs_penalty"},
                               {"random_seed", "train.seed"},
                               {"n_layer", "model.layers"},
                               {"n_layers", "model.layers"},
                               {"num_layers", "model.layers"},
                               {"num_hidden_layers", "model.layers"},
                               {"depth", "model.layers"},
                               {"n_head", "model.heads"},
                               {"n_heads", "model.heads"},
                               {"num_heads", "model.heads"},
                               {"num_attention_heads", "model.heads"},
                               {"num_key_value_heads", "model.kv_heads"},
                               {"head_dim", "model.d_k"},
                               {"d_head", "model.d_k"},
                               {"hidden_size", "model.d_model"},
                               {"n_embd", "model.d_model"},
                               {"dim", "model.d_model"},
                               {"width", "model.d_model"},
                               {"intermediate_size", "model.d_ff"},
                               {"ffn_dim", "model.d_ff"},
                               {"vocab", "model.vocabulary"},
                               {"vocab_size", "model.vocabulary"},
                               {"rope_theta", "model.rope_base"},
                               {"dataset", "data.path"},
                               {"data", "data.path"},
                               {"file", "data.path"},
                               {"train", "data.path"},
                               {"save_every", "train.checkpoint_every"},
                               {"wd", "optim.weight_decay"},
                               {"betas", "optim.beta1"},
                               {"betas", "optim.beta2"},
                               {"metrics", "track.metrics"}};

}  // namespace

std::span<const UsualWord> Setup::usual_words() {
  return words;
}

std::vector<ConfigEntry> in_current_words(std::span<const ConfigEntry> entries) {
  std::vector<ConfigEntry> current;
  for (const ConfigEntry& entry : entries) {
    const OldWord* old = entry.key == "model.qk_norm" ? old_word(entry.value) : nullptr;
    if (old == nullptr) {
      current.push_back(entry);
      continue;
    }
    if (std::ranges::find(entries, "train.qk_gain", &ConfigEntry::key) != entries.end())
      fail_input(
          "{}: model.qk_norm={} is an earlier word that sets train.qk_gain, too, and train.qk_gain is given; say "
          "model.qk_norm={}",
          entry.where, entry.value, old->qk_norm);
    current.push_back({entry.key, old->qk_norm ? "true" : "false", entry.where});
    current.push_back({"train.qk_gain", old->qk_gain, entry.where});
  }
  return current;
}

nlohmann::ordered_json in_current_words(nlohmann::ordered_json config) {
  if (!config.is_object() || !config.contains("model") || !config["model"].is_object()) return config;
  for (const LaterKey& later : later_keys())
    if (config.contains(later.part) && config[later.part].is_object() && !config[later.part].contains(later.key))
      config[later.part][later.key] = later.value_before;
  // Training had no ranks; a study has none.
  if (config.contains("track") && !config.contains("study") && !config.contains("ranks"))
    config["ranks"] = {{"backend", "auto"}, {"reduce", "auto"}, {"timeout", 300.0}};
  if (!config["model"].contains("qk_norm")) return config;  // a study varies it
  nlohmann::ordered_json& qk_norm = config["model"]["qk_norm"];
  const OldWord* old = qk_norm.is_string() ? old_word(qk_norm.get<std::string>()) : nullptr;
  if (old == nullptr || (config.contains("train") && !config["train"].is_object())) return config;
  qk_norm = old->qk_norm;
  config["train"]["qk_gain"] = old->qk_gain;
  return config;
}

Setup preset_setup(const std::string& name) {
  std::vector<std::string> known;
  for (const Setup& setup : all_presets()) {
    if (setup.preset == name) return setup;
    known.push_back(setup.preset);
  }
  fail_input("{}", unknown_name("preset", name, known));
}

void take_vocabulary(Setup& setup, std::span<const ConfigEntry> entries) {
  if (setup.data.tokenizer == byte_tokenizer::name) return;
  if (std::ranges::find(entries, "model.vocabulary", &ConfigEntry::key) != entries.end()) return;
  setup.model.vocabulary = at_place("data.tokenizer", [&] { return TextTokenizer(setup.data.tokenizer).vocabulary(); });
}

void validate(const Setup& setup) {
  validate(setup.model);
  validate(setup.train);
  if (!setup.model.qk_norm && setup.train.qk_gain == QkGain::fixed)
    fail_input(
        "train.qk_gain is fixed and model.qk_norm is false; without QK-Norm there is no gain: leave train.qk_gain out");
  validate(setup.data);
  check_ranges(setup);
}

std::vector<std::string> notices(const Setup& setup) {
  std::vector<std::string> found;
  const std::int64_t steps = setup.train.steps(), trained = steps * setup.train.tokens_per_step();
  if (trained != setup.train.tokens)
    found.push_back(fmt::format("{} → {} tokens: {} whole update{}", with_separators(setup.train.tokens),
                                with_separators(trained), with_separators(steps), steps == 1 ? "" : "s"));
  const std::int64_t together = setup.model.heads * setup.model.d_k;
  if (together != setup.model.d_model)
    found.push_back(fmt::format(
        "model.heads x model.d_k is {}, model.d_model is {}: the heads together are {} than the residual stream",
        together, setup.model.d_model, together > setup.model.d_model ? "wider" : "narrower"));
  return found;
}

Corpus load_corpus_for(const Setup& setup, Console& console) {
  const WantedTokens wanted = wanted_of(setup);
  Corpus corpus = load_corpus(setup.data, wanted, console);
  check_fits(setup, corpus);
  std::string said = fmt::format("data: {}", corpus.source);
  if (!corpus.unigram_entropy) {
    corpus.unigram_entropy = unigram_entropy(corpus.train, corpus.vocabulary);
    said += ", " + tokens_text(corpus.train.size());
  }
  said += fmt::format("; unigram entropy {:.3f} nats a token", *corpus.unigram_entropy);
  if (corpus.true_entropy) said += fmt::format(", true entropy {:.3f}", *corpus.true_entropy);
  console.info(said);
  if (wanted.train - 1 > corpus.train.size())
    console.info(fmt::format("the data is shorter than the run: it is read {:.1f} times",
                             static_cast<double>(wanted.train - 1) / static_cast<double>(corpus.train.size())));
  return corpus;
}

void check_corpus_for(const Setup& setup) {
  const Corpus start =
      start_of_corpus(setup.data, {.train = setup.train.seq_len + 1, .validation = wanted_of(setup).validation});
  if (start.cut)
    check_vocabulary(setup, start);
  else
    check_fits(setup, start);
}

Corpus load_held_out(const Setup& setup, Console& console) {
  WantedTokens wanted = wanted_of(setup);
  wanted.range = setup.model.longest;
  // A sample is taken of the documents that are met on the way through the training part. That part is not kept.
  if (setup.data.validation_sample && setup.data.validation.empty())
    wanted.keeps_train = false;
  else
    wanted.train = 1;
  Corpus corpus = load_corpus(setup.data, wanted, console);
  if (corpus.text_vocabulary > setup.model.vocabulary)
    fail_input("{}: has a vocabulary of {}, the checkpoint's is {}; give data of its tokenizer", corpus.source,
               corpus.vocabulary, setup.model.vocabulary);
  if (corpus.vocabulary > setup.model.vocabulary) check_ids(corpus, setup.model.vocabulary);
  if (setup.data.path == setup.data.validation && !setup.data.path.empty() &&
      corpus.validation.size() < wanted.validation)
    fail_input("{}: has {}; {} batches of {} x {} need {}: give more text, or measure less with --batch and --seq-len",
               corpus.source, tokens_text(corpus.validation.size()), setup.train.validation_batches, setup.train.batch,
               setup.train.seq_len, wanted.validation);
  check_enough_validation(setup.train, corpus);
  if (corpus.documents_beyond_range > 0)
    console.warn(
        fmt::format("{} of {} documents read {} longer than the model's {} tokens; {} cut into sequences of {}",
                    with_separators(corpus.documents_beyond_range), with_separators(corpus.documents_read),
                    corpus.documents_beyond_range == 1 ? "is" : "are", with_separators(setup.model.longest),
                    corpus.documents_beyond_range == 1 ? "it is" : "they are", tokens_text(setup.train.seq_len)));
  return corpus;
}

}  // namespace headscope
