// What `headscope inspect` writes of single heads: their attention over texts (attention.parquet, tokens.parquet), and
// places in the data where they attend (examples.parquet). docs/train.md lists the columns.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/console.h"
#include "data/corpus.h"
#include "data/text_tokenizer.h"
#include "heads/inspection.h"
#include "heads/roles/roles.h"
#include "model/load.h"
#include "probe/head_attention.h"

namespace headscope {

// Texts and heads, read and checked before anything is computed.
struct AttentionJob {
  std::vector<std::vector<std::uint32_t>> texts;  // tokens of each; none is empty
  std::vector<std::vector<std::string>> pieces;   // the same for people
  std::vector<QueryHead> heads;                   // none of a large model of which none are named: see choose_heads
};

// Throws Error(Fault::input): no text, a token beyond the model's vocabulary, a head that the model does not have, or
// more weights than a table may hold.
AttentionJob prepare_attention(const AttentionOptions& options, const LoadedModel& loaded, const Setup& setup,
                               Console& console);

// The heads of a large model, by their roles; evenly where no roles were measured. Does nothing where heads are known.
void choose_heads(AttentionJob& job, const DecoderConfig& model, const std::optional<RolesResult>& roles,
                  Console& console);

void write_attention(const AttentionJob& job, const Decoder& model, const std::filesystem::path& place);

// Of the batches that validation_batches makes. Throws Error(Fault::interrupted).
void write_examples(std::int64_t count, const LoadedModel& loaded, const Setup& setup, const Corpus& corpus,
                    const std::vector<Batch>& batches, const std::filesystem::path& place, Console& console);

}  // namespace headscope
