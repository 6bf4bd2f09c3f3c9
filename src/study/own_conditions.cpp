#include "study/own_conditions.h"

#include <algorithm>

#include "core/atomic_file.h"
#include "core/lists.h"
#include "core/text.h"
#include "study/study_options.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

constexpr const char *conditions_key = "study.conditions", *own_key = "study.own_conditions";
constexpr std::array<std::string_view, 4> fields = {"letter", "name", "changes.KEY", "isolates"};

Condition& condition_of(std::vector<Condition>& conditions, const std::string& tag, const std::string& where) {
  const auto found = std::ranges::find(conditions, tag, &Condition::tag);
  if (found != conditions.end()) return *found;
  if (!is_condition_tag(tag))
    fail_input(
        "{}: '{}' is no name for a condition; expected 1 to 64 letters, digits, - and _, and not seed_N, plots, roles "
        "or checkpoints",
        where, tag);
  if (std::ranges::find(known_conditions(), tag, &Condition::tag) != known_conditions().end())
    fail_input("{}: there is a condition {} already; choose another name", where, tag);
  if (is_taken(tag))
    fail_input("{}: {} is the name of an effect or the letter of a condition; choose another name", where, tag);
  return conditions.emplace_back(Condition{.letter = "", .tag = tag, .name = "", .changes = {}, .isolates = ""});
}

void set_change(Condition& condition, const std::string& key, const std::string& value) {
  for (auto& [known, before] : condition.changes)
    if (known == key) {
      before = value;
      return;
    }
  condition.changes.emplace_back(key, value);
}

// An entry TAG.FIELD.
void add(std::vector<Condition>& conditions, const ConfigEntry& entry) {
  constexpr std::string_view changes = "changes.";
  const std::size_t dot = entry.key.find('.');
  if (dot == std::string::npos)
    fail_input("{}: '{}' is a single value; expected the changes of a condition below it", entry.where, entry.key);
  Condition& condition = condition_of(conditions, entry.key.substr(0, dot), entry.where);
  const std::string field = entry.key.substr(dot + 1);
  if (field.starts_with(changes))
    set_change(condition, field.substr(changes.size()), entry.value);
  else if (field == "letter")
    condition.letter = entry.value;
  else if (field == "name")
    condition.name = entry.value;
  else if (field == "isolates")
    condition.isolates = entry.value;
  else
    fail_input("{}: condition {}: {}", entry.where, condition.tag, unknown_name("field", field, fields));
}

// Gives letters and names to those that have none, and refuses what is not complete.
void complete(std::vector<Condition>& conditions, const std::string& origin) {
  std::vector<std::string> letters;
  for (const Condition& known : known_conditions()) letters.insert(letters.end(), {known.letter, known.tag});
  for (Condition& condition : conditions) {
    if (condition.changes.empty())
      fail_input("{}: condition {} changes nothing; expected 'changes' with keys of the configuration", origin,
                 condition.tag);
    if (condition.letter.empty()) condition.letter = condition.tag;
    const bool is_visible = std::ranges::none_of(condition.letter, [](unsigned char c) { return c < ' ' || c == 127; });
    if (!is_visible || (condition.letter != condition.tag && width_of(condition.letter) > 8))
      fail_input("{}: condition {}: expected a letter of at most 8 visible characters", origin, condition.tag);
    if (condition.name.empty())
      condition.name = condition.letter == condition.tag ? condition.tag : condition.letter + " " + condition.tag;
    const auto has_it = [&](const Condition& other) { return &other != &condition && other.tag == condition.letter; };
    if (std::ranges::find(letters, condition.letter) != letters.end() || std::ranges::any_of(conditions, has_it))
      fail_input("{}: condition {}: the letter {} is taken", origin, condition.tag, condition.letter);
    letters.push_back(condition.letter);
  }
}

bool is_file(std::string_view part) {
  return part.ends_with(".yaml") || part.ends_with(".yml");
}

// A condition that is given a second time replaces the first.
void put(std::vector<Condition>& own, std::vector<Condition> more) {
  for (Condition& condition : more) {
    std::erase_if(own, [&](const Condition& before) { return before.tag == condition.tag; });
    own.push_back(std::move(condition));
  }
}

std::string tag_of_letter(const std::string& letter, const std::vector<Condition>& own) {
  for (const std::vector<Condition>* conditions : {&known_conditions(), &own})
    if (const auto found = std::ranges::find(*conditions, letter, &Condition::letter); found != conditions->end())
      return found->tag;
  return letter;
}

// The tags of a list in which files may stand for their conditions, and letters for tags. What is neither stays.
std::string tags_of(const std::string& list, std::vector<Condition>& own) {
  std::vector<std::string> tags;
  for (const std::string& part : comma_separated(list)) {
    if (!is_file(part)) {
      tags.push_back(part);
      continue;
    }
    std::vector<Condition> conditions = parse_conditions(read_file(part, most_text_bytes), part);
    if (conditions.empty()) fail_input("{}: holds no condition; expected TAG with 'changes' below it", part);
    for (const Condition& condition : conditions) tags.push_back(condition.tag);
    put(own, std::move(conditions));
  }
  for (std::string& tag : tags) tag = tag_of_letter(tag, own);
  return fmt::format("{}", fmt::join(tags, ","));
}

}  // namespace

std::vector<Condition> parse_conditions(const std::string& text, const std::string& origin) {
  std::vector<Condition> conditions;
  for (const ConfigEntry& entry : parse_yaml(text, origin)) add(conditions, entry);
  complete(conditions, origin);
  return conditions;
}

std::string text_of(const std::vector<Condition>& conditions) {
  if (conditions.empty()) return "";
  ordered_json object;
  for (const Condition& condition : conditions) {
    ordered_json changes;
    for (const auto& [key, value] : condition.changes) changes[key] = value;
    object[condition.tag] = {{"letter", condition.letter},
                             {"name", condition.name},
                             {"changes", std::move(changes)},
                             {"isolates", condition.isolates}};
  }
  return object.dump();
}

std::vector<ConfigEntry> with_own_conditions(const std::vector<ConfigEntry>& entries) {
  std::vector<ConfigEntry> result;
  std::vector<Condition> own;
  std::string where;
  for (ConfigEntry entry : entries) {
    if (entry.key.starts_with(std::string(own_key) + ".")) {
      where = entry.where;
      entry.key.erase(0, std::string_view(own_key).size() + 1);
      add(own, entry);
    } else if (entry.key == own_key) {
      where = entry.where;
      put(own, parse_conditions(entry.value, fmt::format("{}: {}", entry.where, own_key)));
    } else {
      result.push_back(std::move(entry));
    }
  }
  complete(own, where);
  for (ConfigEntry& entry : result)
    if (entry.key == conditions_key) {
      const std::size_t before = own.size();
      entry.value = tags_of(entry.value, own);
      if (own.size() != before || where.empty()) where = entry.where;
    }
  if (!own.empty()) result.push_back({own_key, text_of(own), where});
  return result;
}

std::vector<ConfigEntry> with_controls(std::vector<ConfigEntry> entries) {
  std::string conditions = StudyOptions().conditions;
  for (const ConfigEntry& entry : entries)
    if (entry.key == conditions_key) conditions = entry.value;
  const std::vector<std::string> chosen = comma_separated(conditions);
  for (const Condition& condition : known_conditions()) {
    const auto is_this = [&](const std::string& one) { return one == condition.tag || one == condition.letter; };
    if (!is_main(condition.tag) && std::ranges::none_of(chosen, is_this)) conditions += "," + condition.tag;
  }
  entries.push_back({conditions_key, conditions, "--controls"});
  return entries;
}

}  // namespace headscope
