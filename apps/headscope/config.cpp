#include "capture/options.h"
#include "command.h"
#include "core/error.h"
#include "experiments/train_run.h"
#include "heads/surgery.h"
#include "plasticity/options.h"
#include "study/study_options.h"

namespace headscope {
namespace {

// The keys of some commands, in the order in which they are read.
struct KeyTable {
  std::string commands;
  std::vector<ConfigKey> keys;
};

std::vector<KeyTable> all_tables(const std::string& preset) {
  TrainRunOptions train;
  StudyOptions study;
  static_cast<Setup&>(train) = static_cast<Setup&>(study) = preset_setup(preset);
  std::vector<ConfigKey> both, of_train, of_study = config_keys(study);
  for (const ConfigKey& key : config_keys(train)) {
    const auto in_study = std::ranges::find(of_study, key.key, &ConfigKey::key);
    const bool is_same = in_study != of_study.end() && in_study->value == key.value;  // the defaults of two may differ
    (is_same ? both : of_train).push_back(key);
    if (is_same) of_study.erase(in_study);
  }
  return {{"train, study", both},
          {"train", of_train},
          {"study", of_study},
          {"capture", config_keys(CaptureOptions())},
          {"plasticity", config_keys(PlasticityOptions())},
          {"surgery", config_keys(SurgeryOptions())}};
}

// Those that `asked` names: a command, a key, a part ("optim"), or the last part of a key.
void keep_asked(std::vector<KeyTable>& tables, const std::string& asked) {
  const auto is_of_command = [&](const KeyTable& table) {
    return (", " + table.commands + ",").find(", " + asked + ",") != std::string::npos;
  };
  const bool is_command = std::ranges::any_of(tables, is_of_command);
  std::vector<std::string> known;
  for (KeyTable& table : tables) {
    for (const ConfigKey& key : table.keys) known.push_back(key.key);
    std::erase_if(table.keys, [&](const ConfigKey& key) {
      if (is_command) return !is_of_command(table);
      return key.key != asked && !key.key.starts_with(asked + ".") && !key.key.ends_with("." + asked);
    });
  }
  std::erase_if(tables, [](const KeyTable& table) { return table.keys.empty(); });
  if (tables.empty()) fail_unknown_key({asked, "", "config"}, known, Setup::usual_words());
}

void print_table(const KeyTable& table) {
  std::size_t wide = 0, wide_value = 0;
  for (const ConfigKey& key : table.keys) {
    wide = std::max(wide, key.key.size());
    wide_value = std::max(wide_value, key.value.size());
  }
  fmt::print("{}\n", table.commands);
  for (const ConfigKey& key : table.keys)
    fmt::print("  {:<{}}  {:<{}}  {}{}\n", key.key, wide, key.value, std::min<std::size_t>(wide_value, 12), key.meaning,
               key.range == "text" ? "" : fmt::format(" ({})", key.range));
}

// As docs/config.md has it.
void print_markdown(const KeyTable& table) {
  fmt::print("## {}\n\n| key | default | range | meaning |\n|---|---|---|---|\n", table.commands);
  for (const ConfigKey& key : table.keys) {
    std::string meaning = key.meaning;
    for (std::size_t at = 0; (at = meaning.find('|', at)) != std::string::npos; at += 2) meaning.insert(at, 1, '\\');
    fmt::print("| `{}` | {} | {} | {} |\n", key.key, key.value.empty() ? "" : fmt::format("`{}`", key.value), key.range,
               meaning);
  }
}

void print_json(const std::vector<KeyTable>& tables) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KeyTable& table : tables)
    for (const ConfigKey& key : table.keys)
      list.push_back({{"commands", table.commands},
                      {"key", key.key},
                      {"default", key.value},
                      {"range", key.range},
                      {"meaning", key.meaning}});
  fmt::print("{}", json_text({{"keys", std::move(list)}}));
}

}  // namespace

void add_config(CLI::App& app, CommonFlags& common, Command& chosen) {
  struct Flags {
    std::string asked, preset = "tiny";
    bool markdown = false;
  };
  auto flags = std::make_shared<Flags>();
  auto* command = app.add_subcommand("config", "List the keys of the configuration: default, range and meaning");
  command->add_option("key", flags->asked, "A command, a key, or a part such as optim [all]")->type_name("KEY|PART");
  command->add_option("--preset", flags->preset, "Whose values are shown: tiny, 88m or 1.5b [tiny]")->type_name("NAME");
  command->add_flag("--markdown", flags->markdown, "As tables of Markdown");
  add_common_flags(*command, common);
  when_chosen(*command, chosen, [flags, &common] {
    std::vector<KeyTable> tables = all_tables(flags->preset);
    if (!flags->asked.empty()) keep_asked(tables, flags->asked);
    if (common.json) {
      print_json(tables);
      return 0;
    }
    for (std::size_t i = 0; i < tables.size(); ++i) {
      if (i > 0) fmt::print("\n");
      flags->markdown ? print_markdown(tables[i]) : print_table(tables[i]);
    }
    return 0;
  });
}

}  // namespace headscope
