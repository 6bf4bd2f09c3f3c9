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

// CLI11's message on one line, with the nearest flag for a slip of the pen.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  const std::string name = &command == &app ? "headscope" : command.get_display_name();
  std::string message = error.what();
  const auto extras = command.remaining();
  const auto unknown = std::find_if(extras.begin(), extras.end(), [](const std::string& text) { return text.starts_with("-"); });
  if (unknown != extras.end()) {
    std::vector<std::string> known;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& flag : option->get_lnames()) known.push_back("--" + flag);
    const std::string nearest = nearest_name(unknown->substr(0, unknown->find('=')), known);
    message = fmt::format("unknown flag '{}'", *unknown);
    if (!nearest.empty()) message += fmt::format("; did you mean '{}'?", nearest);
  }
  return fmt::format("{} (see '{} --help')", message, name);
}

int run(int argc, char** argv, CommonFlags& flags) {
  CLI::App app("headscope shows what every attention head of a decoder transformer does.", "headscope");
  app.set_version_flag("--version", "headscope " HEADSCOPE_VERSION);
  app.require_subcommand(1);
  flags.command_line = command_line(argc, argv);
  Command chosen;
  add_plasticity(app, flags, chosen);
  add_plot(app, flags, chosen);
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
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
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
