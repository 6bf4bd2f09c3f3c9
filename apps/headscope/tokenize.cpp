#include "data/tokenize.h"

#include "command.h"
#include "core/error.h"

namespace headscope {
namespace {

void print_json(const TokenizeJob& job, const TokenizeOutcome& outcome) {
  nlohmann::ordered_json object = {{"out", job.out.string()},
                                   {"documents", outcome.documents},
                                   {"tokens", outcome.tokens},
                                   {"bytes", outcome.bytes}};
  if (outcome.nats) object["nats"] = *outcome.nats;
  object["seconds"] = outcome.seconds;
  fmt::print("{}", json_text(object));
}

void print_summary(const TokenizeJob& job, const TokenizeOutcome& outcome) {
  fmt::print("{} documents, {} tokens, {:.2f} bytes per token: {}\n", outcome.documents, outcome.tokens,
             static_cast<double>(outcome.bytes) / static_cast<double>(outcome.tokens), job.out.string());
  if (outcome.nats)
    fmt::print("true entropy: {:.4f} nats per token\n", *outcome.nats / static_cast<double>(outcome.tokens));
}

}  // namespace

void add_tokenize(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto job = std::make_shared<TokenizeJob>();
  auto* command = app.add_subcommand("tokenize", "Text to a token file (.bin, with a .json beside it)");
  command->add_option("input", job->inputs, "Files (.txt, .jsonl, also .gz and .zst; .parquet) and folders of them")
      ->type_name("INPUT");
  command->add_option("--out", job->out, "Token file to write")->type_name("FILE.bin")->required();
  command->add_option("--tokenizer", job->tokenizer, "Tokenizer: bytes [bytes]")->type_name("NAME");
  command->add_option("--text-column", job->text_column, "Field or column that holds the text [text]")
      ->type_name("NAME");
  add_number_flag(*command, "--language", job->language_tokens, "TOKENS",
                  "Instead of files: documents of the embedded language");
  add_number_flag(*command, "--language-seed", job->language_seed, "N", "Seed of those documents [0]");
  command->add_flag("--overwrite", job->overwrite, "Replace the file that is there");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [job, &common] {
    Console console(common.console);
    const TokenizeOutcome outcome = tokenize(*job, console);
    if (common.json)
      print_json(*job, outcome);
    else if (!common.console.quiet)
      print_summary(*job, outcome);
    return 0;
  });
}

}  // namespace headscope
