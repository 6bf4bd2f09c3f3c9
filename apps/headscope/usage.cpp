#include "usage.h"

#include <algorithm>

#include "core/config.h"
#include "experiments/train_run.h"

namespace headscope {
namespace {

// "headscope plasticity compare"
std::string full_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : full_name(*command.get_parent()) + " " + command.get_name();
}

// The program, the subcommand that was given, its subcommand.
std::vector<const CLI::App*> chain(const CLI::App& app) {
  std::vector<const CLI::App*> levels = {&app};
  while (!levels.back()->get_subcommands().empty()) levels.push_back(levels.back()->get_subcommands().front());
  return levels;
}

std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

bool takes(const CLI::App& command, const std::string& flag) {
  const std::vector<std::string> flags = flags_of(command);
  return std::find(flags.begin(), flags.end(), flag) != flags.end();
}

// Every command that takes the flag, in quotes.
void find_owners(const CLI::App& command, const std::string& flag, std::vector<std::string>& owners) {
  if (takes(command, flag)) owners.push_back(fmt::format("'{}'", full_name(command)));
  for (const CLI::App* inner : command.get_subcommands(nullptr)) find_owners(*inner, flag, owners);
}

// The key of the configuration that a flag of its name, or of a usual word for it, would set.
std::string key_for(const std::string& flag, const CLI::App& at) {
  if (!takes(at, "--set") || (at.get_name() != "train" && at.get_name() != "study")) return "";
  std::string word = flag.substr(2, flag.find('=') - 2);
  std::ranges::replace(word, '-', '_');
  std::vector<std::string> meant = likely_keys(word, field_names(TrainRunOptions()), Setup::usual_words());
  std::erase_if(meant, [&](const std::string& key) {  // a similar spelling is not enough
    return !key.ends_with("." + word) && std::ranges::none_of(Setup::usual_words(), [&](const UsualWord& usual) {
      return usual.word == word && usual.key == key;
    });
  });
  return fmt::format("{}", fmt::join(meant, "=… or --set "));
}

std::string unknown_flag(const std::string& flag, const CLI::App& at, const std::vector<const CLI::App*>& levels) {
  for (const CLI::App* level : levels)
    if (takes(*level, flag)) return fmt::format("flag '{}' belongs behind '{}'", flag, full_name(*level));
  std::vector<std::string> known = flags_of(at);
  if (at.get_parent() == nullptr) known = flags_of(*levels.back());  // the program itself has next to none
  if (const std::string key = key_for(flag, at); !key.empty())
    return fmt::format("unknown flag '{}'; say '--set {}=…'", flag, key);
  std::vector<std::string> owners;
  find_owners(*levels.front(), flag, owners);
  if (nearest_name(flag, known).empty() && !owners.empty())
    return fmt::format("flag '{}' is not of '{}'; it belongs to {}", flag, full_name(at), fmt::join(owners, ", "));
  return unknown_name("flag", flag, known);
}

std::string unknown_argument(const std::string& word, const CLI::App& at) {
  std::vector<std::string> known;
  for (const CLI::App* inner : at.get_subcommands(nullptr)) known.push_back(inner->get_name());
  // A command that takes arguments of its own was probably given one too many.
  const bool takes_arguments = at.get_parent() != nullptr && at.get_require_subcommand_min() == 0;
  if (takes_arguments && nearest_name(word, known).empty()) return fmt::format("unexpected argument '{}'", word);
  return unknown_name("subcommand", word, known);
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> levels = chain(app);
  for (const CLI::App* level : levels) {
    const std::vector<std::string> extras = level->remaining();
    if (extras.empty()) continue;
    const std::string word = extras.front().substr(0, extras.front().find('='));
    return fmt::format("{} (see '{} --help')",
                       word.starts_with('-') ? unknown_flag(word, *level, levels) : unknown_argument(word, *level),
                       full_name(*level));
  }
  return fmt::format("{} (see '{} --help')", error.what(), full_name(*levels.back()));
}

}  // namespace headscope
