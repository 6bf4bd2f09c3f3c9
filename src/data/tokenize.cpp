#include "data/tokenize.h"

#include <nlohmann/json.hpp>

#include "core/bounds.h"
#include "core/config.h"
#include "core/interrupt.h"
#include "data/documents.h"
#include "data/language.h"
#include "data/text_tokenizer.h"
#include "data/token_file.h"
#include "data/tokens.h"
#include "formats/text_input.h"
#include "tokenizer/utf8.h"

namespace headscope {
namespace {

void stop_if_interrupted() {
  if (interrupt_requested()) throw Error(Fault::interrupted, "interrupted; nothing was written");
}

void add_files(const TokenizeJob& job, TokenFileWriter& writer, Console& console) {
  const auto files = document_files(job.inputs);
  Progress progress(console, "tokenizing", "files", files.size());
  for (const auto& file : files) {
    for_each_document(file, job.text_column, [&](std::string_view document, const DocumentPlace& place) {
      stop_if_interrupted();
      writer.add(document, place);
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
    writer.add(document.text, {});
    nats += document.nats;
  }
  return nats;
}

}  // namespace

void tokenize_lines(const TokenizeLinesJob& job, Console& console,
                    const std::function<void(std::string_view)>& on_line) {
  TextTokenizer tokenizer(job.tokenizer);
  LineReader lines(job.lines);
  std::string line;
  std::vector<std::uint32_t> ids;
  while (lines.next(line)) {
    const std::string place = fmt::format("{}: line {}", job.lines.string(), lines.number());
    if (first_invalid_utf8(line)) fail_input("{}: is not UTF-8", place);
    const nlohmann::json text = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!text.is_string()) fail_input("{}: is not a JSON string; expected one text a line, such as \"a text\"", place);
    ids.clear();
    tokenizer.encode(text.get_ref<const std::string&>(), job.add_special, place, ids);
    on_line(fmt::format("[{}]\n", fmt::join(ids, ", ")));
  }
  tokenizer.warn(console);
}

TokenizeOutcome tokenize(const TokenizeJob& job, Console& console) {
  if (job.inputs.empty() == !job.language_tokens)
    fail_input("expected either text files to read or --language N, the number of tokens to make");
  check_size("--language", job.language_tokens.value_or(1), 1, most_tokens);
  const auto start = Clock::now();
  const InterruptGuard guard;
  TextTokenizer tokenizer(job.tokenizer);
  if (job.language_tokens && job.tokenizer != byte_tokenizer::name)
    fail_input("--language writes the bytes of the embedded language; leave --tokenizer out");
  TokenFileWriter writer(job.out, job.overwrite, tokenizer);
  TokenizeOutcome outcome;
  if (job.language_tokens)
    outcome.nats = add_language(job, writer);
  else
    add_files(job, writer, console);
  writer.finish();
  tokenizer.warn(console);
  outcome.documents = writer.documents();
  outcome.tokens = writer.tokens();
  outcome.bytes = writer.bytes();
  outcome.seconds = seconds_since(start);
  return outcome;
}

}  // namespace headscope
