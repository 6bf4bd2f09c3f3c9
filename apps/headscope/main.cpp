// headscope: one subcommand per file; this one parses, dispatches and turns errors into one line and an exit code.
#include <malloc.h>

#include <iostream>
#include <new>

#include "command.h"
#include "core/error.h"

namespace {

using namespace headscope;

// --max_tokens_per_head is --max-tokens-per-head: both spellings are in use.
std::vector<std::string> normalised_arguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (std::string& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("--")) continue;
    const auto end = argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size()));
    std::replace(argument.begin(), end, '_', '-');
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them last first
  return arguments;
}

std::string command_line(int argc, char** argv) {
  std::string line = "headscope";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool plain = !argument.empty() && argument.find_first_of(" \t\n'\"\\$`*?[](){}<>|&;#~") == std::string::npos;
    line += plain ? " " + argument : fmt::format(" '{}'", argument);
  }
  return line;
}

const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

// "headscope plasticity compare"
std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : full_name(*command.get_parent()) + " " + command.get_name();
}

// What was probably meant by a word that the command does not know; empty when it knows all of them.
std::string unknown_word(const CLI::App& command) {
  const auto extras = command.remaining();
  if (extras.empty()) return "";
  const std::string word = extras.front().substr(0, extras.front().find('='));
  const bool is_flag = word.starts_with("-");
  std::vector<std::string> known;
  if (is_flag) {
    for (const CLI::Option* option : command.get_options())
      for (const std::string& flag : option->get_lnames()) known.push_back("--" + flag);
  } else {
    for (const CLI::App* subcommand : command.get_subcommands(nullptr)) known.push_back(subcommand->get_name());
  }
  const std::string nearest = nearest_name(word, known);
  return fmt::format("unknown {} '{}'{}", is_flag ? "flag" : "argument", word,
                     nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest));
}

// CLI11's message on one line, with the nearest name for a slip of the pen.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const std::string unknown = unknown_word(command);
  return fmt::format("{} (see '{} --help')", unknown.empty() ? error.what() : unknown, full_name(command));
}

int run(int argc, char** argv, CommonFlags& flags) {
  CLI::App app("headscope shows what every attention head of a decoder transformer does.", "headscope");
  app.set_version_flag("--version", "headscope " HEADSCOPE_VERSION);
  app.require_subcommand(1);
  flags.command_line = command_line(argc, argv);
  Command chosen;
  add_train(app, flags, chosen);
  add_study(app, flags, chosen);
  add_inspect(app, flags, chosen);
  add_roles(app, flags, chosen);
  add_plasticity(app, flags, chosen);
  add_surgery(app, flags, chosen);
  add_plot(app, flags, chosen);
  add_bench(app, flags, chosen);
  add_tokenize(app, flags, chosen);
  try {
    app.parse(normalised_arguments(argc, argv));
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    if (argc == 1) {
      std::cout << app.help();
      return static_cast<int>(Fault::input);
    }
    fail_input("{}", usage_message(app, error));
  }
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  // Arrays of tens of megabytes come and go with every head: keep their memory instead of giving it back to the system,
  // which would clear every page again.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 1);  // an arena of a thread of its own would be given back whenever it is empty
  CommonFlags flags;
  const auto report = [](std::string_view message) { Console().error(message); };
  try {
    return run(argc, argv, flags);
  } catch (const Error& error) {
    report(error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    report("out of memory; use fewer workers (--workers 1) or fewer rows");
  } catch (const std::exception& error) {
    report(error.what());
  }
  return static_cast<int>(Fault::runtime);
}
