// The data of a training run: tokens of documents, packed one after another, in a training and a validation part.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/console.h"
#include "data/split.h"
#include "data/tokens.h"

namespace headscope {

struct DataOptions {
  std::string path;        // a text file, a folder of them, or a token file (.bin); empty: the embedded language
  std::string validation;  // the same for validation; empty: a share of the data, chosen by hash
  double validation_share = 0.02;    // four batches of 16 x 256 bytes out of a megabyte of text
  std::string tokenizer = "bytes";   // needs no file
  std::string text_column = "text";  // as most published corpora have it
  std::uint64_t language_seed = 0;
  bool validation_sample = true;  // neighbouring blocks are of one or two documents

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("data.path", self.path,
          "Text (.txt, .jsonl, .parquet), a folder of it, or tokens (.bin); the embedded language");
    visit("data.validation", self.validation, "The same for validation (default: a share of the data, by hash)");
    visit("data.validation_share", self.validation_share, "Share of the documents that is kept for validation",
          between(0, 1));
    visit("data.tokenizer", self.tokenizer,
          "bytes, a tokenizer.json, the folder of a model that holds one, or a GGUF file; for text, token files have "
          "theirs");
    visit("data.text_column", self.text_column, "Field or column that holds the text");
    visit("data.language_seed", self.language_seed, "Seed of the embedded language's documents");
    visit("data.validation_sample", self.validation_sample,
          "Validation and probes take a sample of blocks over the validation text; false: its first blocks");
  }
};

// Throws Error(Fault::input) on values that make no sense.
void validate(const DataOptions& options);

// The files and folders that are read.
std::vector<std::filesystem::path> inputs_of(const DataOptions& options);

struct Corpus {
  Tokens train, validation;
  std::string tokenizer;
  std::int64_t vocabulary = 0;
  std::int64_t text_vocabulary = 0;  // without special tokens behind all others; of a token file the same
  // Documents; of those longer than 16384 tokens, pieces of that many.
  std::int64_t train_documents = 0;
  std::vector<std::int64_t> validation_starts;  // where each document of validation begins
  bool sampled = false;  // fixed batches take a sample of the validation blocks, not the first ones
  // Nats per token: the unigram entropy, and exactly -log p of the validation documents over their tokens (start and
  // end-of-text included), the best loss any model can have. Of the embedded language; the unigram entropy of other
  // text is that of the training part, where a run trains.
  std::optional<double> unigram_entropy, true_entropy;
  std::string source;  // "embedded language, seed 0", "corpus.jsonl"
  std::string hash;    // XXH3 (128 bits, hex) of training and validation tokens
  bool cut = false;    // start_of_corpus stopped before the parts were full or the data ended
  // Documents that were read, whatever part they are in, and those of them that are longer than the range, without the
  // token that ends them; of the validation data alone where it is given.
  std::int64_t documents_read = 0, documents_beyond_range = 0;
};

// Reads until both parts have as many tokens as wanted, or the data ends; documents are never cut off. A larger number
// only appends to its part. The number wanted for validation does not change training. That for training changes
// validation where most_validation is larger than `validation` and not reached: the farther training is read, the more
// documents of validation are met. Validation data of its own is read up to most_validation. Without keeps_train,
// validation is the same and training empty. Throws Error(Fault::input) when there is no text, a file is damaged, or
// validation would be empty.
Corpus load_corpus(const DataOptions& options, const WantedTokens& wanted, Console& console);

// The same for a check before a run, without hash: reads some megabytes at most and throws the errors found in them.
// Nothing is read of the embedded language, which never ends and has no errors.
Corpus start_of_corpus(const DataOptions& options, const WantedTokens& wanted);

}  // namespace headscope
