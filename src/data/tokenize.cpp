#include "data/tokenize.h"

#include "core/bounds.h"
#include "core/config.h"
#include "core/interrupt.h"
#include "data/documents.h"
#include "data/language.h"
#include "data/token_file.h"
#include "data/tokens.h"

namespace headscope {
namespace {

void stop_if_interrupted() {
  if (interrupt_requested()) throw Error(Fault::interrupted, "interrupted; nothing was written");
}

void add_files(const TokenizeJob& job, TokenFileWriter& writer, Console& console) {
  const auto files = document_files(job.inputs);
  Progress progress(console, "tokenizing", "files", files.size());
  for (const auto& file : files) {
    for_each_document(file, job.text_column, [&](std::string_view document) {
      stop_if_interrupted();
      writer.add(document);
      return true;
    });
    progress.step();
  }
  if (writer.documents() == 0) fail_input("{}: holds no text", job.inputs.front().string());
}

double add_language(const TokenizeJob& job, TokenFileWriter& writer) {
  const Language language(job.language_seed);
  double nats = 0;
  for (std::uint64_t index = 0; writer.tokens() < *job.language_tokens; ++index) {
    stop_if_interrupted();
    const LanguageDocument document = language.document(index);
    writer.add(document.text);
    nats += document.nats;
  }
  return nats;
}

}  // namespace

TokenizeOutcome tokenize(const TokenizeJob& job, Console& console) {
  if (job.inputs.empty() == !job.language_tokens)
    fail_input("expected either text files to read or --language N, the number of tokens to make");
  check_size("--language", job.language_tokens.value_or(1), 1, most_tokens);
  const auto start = Clock::now();
  const InterruptGuard guard;
  if (job.tokenizer != byte_tokenizer::name)
    fail_input("{}", unknown_name("tokenizer", job.tokenizer, std::array{byte_tokenizer::name}));
  TokenFileWriter writer(job.out, job.overwrite);
  TokenizeOutcome outcome;
  if (job.language_tokens)
    outcome.nats = add_language(job, writer);
  else
    add_files(job, writer, console);
  writer.finish();
  outcome.documents = writer.documents();
  outcome.tokens = writer.tokens();
  outcome.bytes = writer.bytes();
  outcome.seconds = seconds_since(start);
  return outcome;
}

}  // namespace headscope
