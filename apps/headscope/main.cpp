// headscope: one subcommand per file; this one parses, dispatches and turns errors into one line and an exit code.
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>

#include "command.h"
#include "core/error.h"
#include "core/plain_error.h"
#include "core/text.h"
#include "launch/launch.h"
#include "launch/place.h"
#include "study/worker_board.h"
#include "usage.h"

namespace {

using namespace headscope;

// A file that is opened later must not take the number of a standard stream that is closed: messages would be written
// into it. Writing to what is opened here fails, as writing to a closed stream does.
void occupy_standard_streams() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (::fcntl(number, F_GETFD) == -1 && errno == EBADF) ::open("/dev/null", O_RDONLY);  // takes the lowest number
}

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
  for (int i = 1; i < argc; ++i) line += " " + shell_word(argv[i]);
  return line;
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == worker_command) return study_worker();
  CLI::App app("headscope shows what every attention head of a decoder transformer does.", "headscope");
  app.set_version_flag("--version", "headscope " HEADSCOPE_VERSION);
  app.require_subcommand(1);
  CommonFlags flags;
  flags.command_line = command_line(argc, argv);
  Command chosen;
  add_train(app, flags, chosen);
  add_study(app, flags, chosen);
  add_capture(app, flags, chosen);
  add_inspect(app, flags, chosen);
  add_heads(app, flags, chosen);
  add_roles(app, flags, chosen);
  add_parity(app, flags, chosen);
  add_plasticity(app, flags, chosen);
  add_surgery(app, flags, chosen);
  add_plot(app, flags, chosen);
  add_report(app, flags, chosen);
  add_config(app, flags, chosen);
  add_bench(app, flags, chosen);
  add_tokenize(app, flags, chosen);
  try {
    app.parse(normalised_arguments(argc, argv));
  } catch (const CLI::Success& request) {  // --help, --version
    std::ostringstream text;
    const int code = app.exit(request, text, text);
    fmt::print("{}", text.str());
    return code;
  } catch (const CLI::ParseError& error) {
    if (argc == 1) {
      fmt::print("{}", app.help());
      return static_cast<int>(Fault::input);
    }
    fail_input("{}", usage_message(app, error));
  }
  return chosen();
}

// A mapped file that another process cuts cannot be read any more: there is nothing to go on with.
extern "C" void end_on_a_cut_file(int) {
  constexpr std::string_view line = "headscope: a file was cut short while it was read; put it back and start again\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(static_cast<int>(Fault::runtime));
}

// What cannot be written is a failure, be it at the last moment.
void flush_output() {
  if (std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
}

// Whatever was thrown, as an Error.
Error current_error() {
  try {
    throw;
  } catch (const std::filesystem::filesystem_error& error) {
    return plain_error(error);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) == 0) return plain_error(error);
    return {Fault::runtime, fmt::format("cannot write to standard output: {}", error.code().message())};
  } catch (const std::exception& error) {
    return plain_error(error);
  } catch (...) {
    return {Fault::runtime, "an unknown error; please report what was done"};
  }
}

void print_json(const Error& error) {
  fmt::print("{}", json_text(to_json(error)));
  std::fflush(stdout);
}

bool asks_for_json(int argc, char** argv) {
  return std::find(argv, argv + argc, std::string_view("--json")) != argv + argc;
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  // Arrays of tens of megabytes come and go with every head: keep their memory instead of giving it back to the system,
  // which would clear every page again.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the largest value that glibc takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 1);  // an arena of a thread of its own would be given back whenever it is empty
  // A reader that went away, or a limit on the size of files, makes writing fail; it must not end a run unsaved.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGBUS, end_on_a_cut_file);
  try {
    const int code = run(argc, argv);
    flush_output();
    if (!place_among_tasks().said_by.empty()) ::_exit(code);  // threads of its connections may still be at work
    return code;
  } catch (...) {
    const Error error = current_error();
    const bool is_said_here = *error.what() != '\0';  // an Error of ours without text: another process says it
    if (is_said_here) Console().error(error.what());
    if (is_said_here && asks_for_json(argc, argv) && std::ferror(stdout) == 0) print_json(error);
    std::fflush(nullptr);
    const int code = is_said_here ? error.exit_code() : silent_exit_code(error.exit_code());
    ::_exit(code);  // threads of connections that broke may still be at work
  }
}
