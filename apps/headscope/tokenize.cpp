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

struct TokenizeFlags {
  TokenizeJob job;
  std::filesystem::path lines;  // instead of a token file: texts, one a line
  bool no_special = false;
};

int print_lines(const TokenizeFlags& flags, const CommonFlags& common) {
  if (!flags.job.inputs.empty() || !flags.job.out.empty() || flags.job.language_tokens)
    fail_input("--lines prints the tokens; leave input files, --out and --language out");
  Console console(common.console);
  tokenize_lines({flags.lines, flags.job.tokenizer, !flags.no_special}, console,
                 [](std::string_view line) { fmt::print("{}", line); });
  return 0;
}

int write_tokens(const TokenizeFlags& flags, const CommonFlags& common) {
  if (flags.job.out.empty()) fail_input("--out FILE.bin is missing; or give --lines FILE.jsonl to print tokens");
  if (flags.no_special) fail_input("--no-special belongs to --lines: documents of a token file end with their token");
  Console console(common.console);
  const TokenizeOutcome outcome = tokenize(flags.job, console);
  if (common.json)
    print_json(flags.job, outcome);
  else if (!common.console.quiet)
    print_summary(flags.job, outcome);
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, CommonFlags& common, Command& chosen) {
  auto flags = std::make_shared<TokenizeFlags>();
  TokenizeJob& job = flags->job;
  auto* command = app.add_subcommand("tokenize", "Text to a token file (.bin, with a .json beside it)");
  command->add_option("input", job.inputs, "Files (.txt, .jsonl, also .gz and .zst; .parquet) and folders of them")
      ->type_name("INPUT");
  command->add_option("--out", job.out, "Token file to write")->type_name("FILE.bin");
  command
      ->add_option("--tokenizer", job.tokenizer,
                   "Tokenizer: bytes, a tokenizer.json, the folder of a model that holds one, or a GGUF file [bytes]")
      ->type_name("T");
  command
      ->add_option("--lines", flags->lines,
                   "Instead of writing a file: print the tokens of each line, a JSON string, as a JSON list")
      ->type_name("FILE.jsonl");
  command->add_flag("--no-special", flags->no_special, "With --lines: without tokens that begin and end a text");
  command->add_option("--text-column", job.text_column, "Field or column that holds the text [text]")
      ->type_name("NAME");
  add_number_flag(*command, "--language", job.language_tokens, "TOKENS",
                  "Instead of files: documents of the embedded language");
  add_number_flag(*command, "--language-seed", job.language_seed, "N", "Seed of those documents [0]");
  command->add_flag("--overwrite", job.overwrite, "Replace the file that is there");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] {
    return flags->lines.empty() ? write_tokens(*flags, common) : print_lines(*flags, common);
  });
}

}  // namespace headscope
