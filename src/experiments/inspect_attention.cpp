#include "experiments/inspect_attention.h"

#include "capture/texts.h"
#include "core/atomic_file.h"
#include "core/bounds.h"
#include "core/interrupt.h"
#include "core/lists.h"
#include "core/text.h"
#include "formats/parquet_table.h"
#include "heads/roles/choice.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_texts = 8;            // a page shows one at a time
constexpr std::int64_t most_heads = 256;          // of which all are taken
constexpr std::size_t heads_of_many = 64;         // of a larger model
constexpr std::int64_t most_weights = 1LL << 27;  // half a GiB

// The tokenizer of texts that are given: the one that is named, otherwise the model's own.
std::string tokenizer_for_text(const LoadedModel& loaded, const Setup& setup) {
  if (loaded.architecture.empty() || setup.data.tokenizer != byte_tokenizer::name) return setup.data.tokenizer;
  if (!has_tokenizer(loaded))
    fail_input("{}: has no tokenizer of its own; name one with --tokenizer", loaded.checkpoint.string());
  return loaded.checkpoint.string();
}

QueryHead head_named(const std::string& name, const DecoderConfig& model) {
  const auto named = query_head_named(name);
  if (!named)
    fail_input("--attention-heads: '{}' is no query head; expected L3H5 for head 5 of layer 3", excerpt(name));
  const auto [layer, head] = *named;
  if (layer >= model.layers || head >= model.heads)
    fail_input("--attention-heads: {} is not there; the model has layers 0 to {} of heads 0 to {}", name,
               model.layers - 1, model.heads - 1);
  return {layer, head};
}

std::int64_t count_of(const DecoderConfig& model) {
  return model.layers * model.heads;
}

QueryHead head_at(std::size_t place, const DecoderConfig& model) {
  const auto number = static_cast<std::int64_t>(place);
  return {number / model.heads, number % model.heads};
}

// Those that are named, or all of a small model; none otherwise.
std::vector<QueryHead> known_heads(const std::string& names, const DecoderConfig& model) {
  std::vector<QueryHead> heads;
  if (!names.empty()) {
    for (const std::string& name : comma_separated(names)) {
      const QueryHead one = head_named(name, model);
      if (std::ranges::find(heads, one) == heads.end()) heads.push_back(one);
    }
  } else if (const std::int64_t all = count_of(model); all <= most_heads) {
    for (std::int64_t i = 0; i < all; ++i) heads.push_back(head_at(static_cast<std::size_t>(i), model));
  }
  return heads;
}

// The tokenizer that shows the tokens of the data; none where only the ids are known.
std::optional<TextTokenizer> tokenizer_for_data(const LoadedModel& loaded, const Setup& setup, const Corpus& corpus) {
  std::vector<std::string> names = {byte_tokenizer::name, setup.data.tokenizer};
  if (has_tokenizer(loaded)) names.push_back(loaded.checkpoint.string());
  for (const std::string& name : names) {
    if (name == byte_tokenizer::name && corpus.tokenizer != name) continue;
    try {
      TextTokenizer tokenizer(name);
      if (tokenizer.name() == corpus.tokenizer) return tokenizer;
    } catch (const Error&) {  // tokens need no tokenizer: it may be gone
    }
  }
  return std::nullopt;
}

}  // namespace

AttentionJob prepare_attention(const AttentionOptions& options, const LoadedModel& loaded, const Setup& setup,
                               Console& console) {
  const DecoderConfig& model = setup.model;
  check_size("--tokens", options.tokens, 1, most_shown_tokens);
  const std::int64_t range = model.longest == 0 ? options.tokens : std::min(options.tokens, model.longest);
  if (range < options.tokens)
    console.warn(fmt::format("{}: the model's range is {} tokens; texts are cut to it", loaded.checkpoint.string(),
                             with_separators(range)));
  TextTokenizer tokenizer(tokenizer_for_text(loaded, setup));
  AttentionJob job;
  job.heads = known_heads(options.heads, model);
  const std::size_t heads = job.heads.empty() ? heads_of_many : job.heads.size();
  const fs::path given[] = {options.text};
  const TextSource source{.files = document_files(given), .text_column = setup.data.text_column};
  bool has_more = false;
  std::int64_t weights = 0;
  for_each_tokenized(source, tokenizer, {.tokens = range, .texts = {}}, [&](std::int64_t, const auto& tokens) {
    has_more = std::ssize(job.texts) == most_texts;
    if (has_more) return false;
    job.texts.push_back(tokens);
    Texts& pieces = job.pieces.emplace_back();
    for (const std::uint32_t token : tokens) {
      if (static_cast<std::int64_t>(token) >= model.vocabulary)
        fail_input("{}: token {} is beyond the model's vocabulary of {}; give its own tokenizer", options.text, token,
                   model.vocabulary);
      pieces.push_back(tokenizer.shown(token));
    }
    const std::int64_t t = std::ssize(tokens);
    weights += t * (t + 1) / 2 * static_cast<std::int64_t>(heads);
    return true;
  });
  if (job.texts.empty()) fail_input("{}: holds no text", options.text);
  if (has_more) console.info(fmt::format("{}: attention is written of its first {} texts", options.text, most_texts));
  if (weights > most_weights)
    fail_input(
        "--text: {} weights of {} heads are too many for a table of {}; give fewer --tokens or --attention-heads",
        with_separators(weights), heads, with_separators(most_weights));
  tokenizer.warn(console);
  return job;
}

void choose_heads(AttentionJob& job, const DecoderConfig& model, const std::optional<RolesResult>& roles,
                  Console& console) {
  if (job.texts.empty() || !job.heads.empty()) return;
  const auto all = static_cast<std::size_t>(count_of(model));
  const HeadChoice choice =
      roles ? choose_heads(*roles, heads_of_many) : HeadChoice{.heads = evenly_spaced(all, heads_of_many)};
  for (const std::size_t place : choice.heads) job.heads.push_back(head_at(place, model));
  std::string how = "evenly";
  if (choice.with_role > 0)
    how = fmt::format("{}{} that have a role, by clarity", choice.with_role,
                      choice.with_role < choice.all_with_role ? fmt::format(" of the {}", choice.all_with_role) : "");
  if (const std::size_t others = choice.heads.size() - choice.with_role; choice.with_role > 0 && others > 0)
    how += fmt::format(", and {} evenly", others);
  console.info(
      fmt::format("attention of {} of {} heads: {}; --attention-heads names others", job.heads.size(), all, how));
}

void write_attention(const AttentionJob& job, const Decoder& model, const fs::path& place) {
  Rows<std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::vector<float>> attention(
      {"text", "layer", "head", "query", "weights"});
  Rows<std::int64_t, std::int64_t, std::int64_t, std::string> tokens({"text", "position", "id", "piece"});
  for (std::size_t text = 0; text < job.texts.size(); ++text) {
    const auto number = static_cast<std::int64_t>(text);
    const std::vector<std::int64_t> ids(job.texts[text].begin(), job.texts[text].end());
    const auto time = std::ssize(ids);
    for (std::int64_t i = 0; i < time; ++i) {
      const auto at = static_cast<std::size_t>(i);
      tokens.add(number, i, ids[at], job.pieces[text][at]);
    }
    const std::vector<at::Tensor> matrices = head_attention(model, at::tensor(ids, at::kLong), job.heads);
    for (std::size_t h = 0; h < job.heads.size(); ++h) {
      const float* row = matrices[h].const_data_ptr<float>();
      for (std::int64_t query = 0; query < time; ++query, row += time)
        attention.add(number, job.heads[h].layer, job.heads[h].head, query, std::vector(row, row + query + 1));
    }
    if (interrupt_requested()) throw Error(Fault::interrupted, "interrupted");
  }
  write_file(place / attention_name, to_parquet(attention.take()));
  write_file(place / tokens_name, to_parquet(tokens.take()));
}

void write_examples(std::int64_t count, const LoadedModel& loaded, const Setup& setup, const Corpus& corpus,
                    const std::vector<Batch>& batches, const fs::path& place, Console& console) {
  const std::int64_t time = setup.train.seq_len;
  const std::vector<std::int64_t> blocks =
      fixed_blocks(corpus.validation.size(), setup.train.validation_batches, setup.train.batch, time, corpus.sampled);
  const std::optional<TextTokenizer> tokenizer = tokenizer_for_data(loaded, setup, corpus);
  if (!tokenizer)
    console.warn(fmt::format("{}: its tokenizer '{}' is not known here; examples show the ids of tokens", corpus.source,
                             corpus.tokenizer));
  const auto shown = [&](std::int64_t token) {
    return tokenizer ? tokenizer->shown(static_cast<std::uint32_t>(token)) : fmt::format("⟨{}⟩", token);
  };
  Progress progress(console, "examples", "batches", batches.size());
  const std::vector<AttentionExample> examples = find_examples(loaded.model, batches, count, [&] {
    progress.step();
    if (interrupt_requested()) throw Error(Fault::interrupted, "interrupted");
  });
  Rows<std::int64_t, std::int64_t, double, double, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
       std::vector<std::string>, std::vector<float>, std::int64_t, std::optional<std::int64_t>>
      rows({"layer", "head", "quantile", "strength", "document", "sequence", "query", "key", "pieces", "weights",
            "query_at", "key_at"});
  for (const AttentionExample& one : examples) {
    const std::int64_t block = blocks[static_cast<std::size_t>(one.sequence)], place_in_text = block * time + one.query;
    const std::int64_t document =
        std::ranges::upper_bound(corpus.validation_starts, place_in_text) - corpus.validation_starts.begin() - 1;
    std::vector<std::int64_t> tokens(one.weights.size());
    corpus.validation.copy(block * time + one.window_first, std::ssize(tokens), tokens.data());
    Texts pieces;
    for (const std::int64_t token : tokens) pieces.push_back(shown(token));
    const std::int64_t key_at = one.key - one.window_first;
    const bool is_inside = key_at >= 0 && key_at < std::ssize(tokens);
    rows.add(one.of.layer, one.of.head, one.quantile, one.strength, document, block, one.query, one.key, pieces,
             one.weights, one.query - one.window_first, is_inside ? std::optional(key_at) : std::nullopt);
  }
  write_file(place / examples_name, to_parquet(rows.take()));
}

}  // namespace headscope
