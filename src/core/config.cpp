#include "core/config.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>

#include "core/atomic_file.h"
#include "core/text.h"

namespace headscope {
namespace {

std::string place_of(const std::string& origin, const YAML::Node& node) {
  return fmt::format("{}:{}", origin, node.Mark().line + 1);
}

// A YAML alias may contain itself, or be repeated so often that the keys or a list of a short file fill the memory.
constexpr int deepest = 8;
constexpr std::size_t most_keys = 10'000, most_list_bytes = 1 << 20;

std::string scalar_text(const YAML::Node& node, const std::string& key, const std::string& origin) {
  if (node.IsScalar()) return node.Scalar();
  if (!node.IsSequence()) fail_input("{}: '{}' is not a single value or a list", place_of(origin, node), excerpt(key));
  std::string items, comma;
  for (const auto& item : node) {
    if (!item.IsScalar()) fail_input("{}: '{}' holds a nested list", place_of(origin, item), excerpt(key));
    if (items.size() + item.Scalar().size() > most_list_bytes)
      fail_input("{}: '{}' is a list of more than {} bytes", place_of(origin, node), excerpt(key), most_list_bytes);
    items += std::exchange(comma, ",") + item.Scalar();
  }
  return items;
}

struct Flattening {
  const std::string& origin;
  std::vector<ConfigEntry> entries;
  std::size_t keys = 0;

  void add(const YAML::Node& map, const std::string& prefix, int depth) {
    if (depth > deepest)
      fail_input("{}: '{}' is nested more than {} deep", place_of(origin, map), prefix.substr(0, 60), deepest);
    std::set<std::string> seen;
    for (const auto& item : map) {
      if (++keys > most_keys) fail_input("{}: has more than {} keys", origin, most_keys);
      if (!item.first.IsScalar()) fail_input("{}: a key that is not text", place_of(origin, item.first));
      const std::string key = prefix + item.first.Scalar();
      if (!seen.insert(key).second) fail_input("{}: '{}' is given twice", place_of(origin, item.first), excerpt(key));
      if (item.second.IsMap())
        add(item.second, key + ".", depth + 1);
      else if (!item.second.IsNull())
        entries.push_back({key, scalar_text(item.second, key, origin), place_of(origin, item.first)});
    }
  }
};

// Documents with content, by the lines --- between them. (YAML::LoadAll does not end on some damaged text.)
int count_documents(std::string_view text) {
  int documents = 0;
  bool has_content = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool is_mark = line.starts_with("---") && (line.size() == 3 || line[3] == ' ' || line[3] == '\r');
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (is_mark) has_content = false;
    if (is_mark || has_content || first == std::string_view::npos || line[first] == '#' || line[0] == '%') continue;
    has_content = true;
    ++documents;
  }
  return documents;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// The one known name that starts with this one; empty when there is none, or several.
std::string only_longer_name(std::string_view name, std::span<const std::string> known) {
  constexpr std::size_t shortest = 3;  // a shorter text fits too many names
  const auto starts = [&](const std::string& candidate) { return lower_case(candidate).starts_with(lower_case(name)); };
  const auto found = std::ranges::find_if(known, starts);
  if (name.size() < shortest || found == known.end() || std::any_of(found + 1, known.end(), starts)) return "";
  return *found;
}

std::string_view last_part(std::string_view key) {
  return key.substr(key.rfind('.') + 1);  // all of it without a dot
}

void emit(YAML::Emitter& out, const nlohmann::ordered_json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const auto& member : value) emit(out, member);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    out << value.get<std::string>();
  } else if (value.is_null()) {
    out << YAML::Null;
  } else {
    out << value.dump();  // numbers in shortest round-trip form
  }
}

}  // namespace

std::optional<bool> parse_choice(std::string_view text) {
  const std::string lower = lower_case(text);
  if (lower == "true" || lower == "yes" || lower == "on") return true;
  if (lower == "false" || lower == "no" || lower == "off") return false;
  return std::nullopt;
}

std::optional<double> parse_short_number(std::string_view given) {
  constexpr double most = 9007199254740992;  // 2^53
  std::string digits(given);
  for (std::size_t i = 1; i + 1 < digits.size(); ++i)  // between digits
    if (digits[i] == '_' && std::isdigit(static_cast<unsigned char>(digits[i - 1])) != 0 &&
        std::isdigit(static_cast<unsigned char>(digits[i + 1])) != 0)
      digits.erase(i, 1);
  std::string_view text = digits;
  double scale = 1;
  if (!text.empty()) {
    const char last = text.back();
    scale = last == 'k' || last == 'K' ? 1e3 : last == 'M' ? 1e6 : last == 'B' || last == 'G' ? 1e9 : 1;
    if (scale != 1) text.remove_suffix(1);
    if (scale != 1 && text.find_first_of("eE") != std::string_view::npos) return std::nullopt;  // "1e5k"
  }
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  number *= scale;
  if (!(std::fabs(number) <= most)) return std::nullopt;
  return number;
}

std::vector<ConfigEntry> parse_yaml(const std::string& text, const std::string& origin) {
  Flattening flattening{origin, {}, 0};
  try {
    const YAML::Node root = YAML::Load(text);
    const int documents = count_documents(text);
    if (documents > 1) fail_input("{}: holds several YAML documents (---); expected one", origin);
    if (root.IsNull() && documents == 0) return {};
    if (!root.IsMap()) fail_input("{}: expected 'key: value' lines at the top", origin);
    flattening.add(root, "", 1);
  } catch (const YAML::Exception& error) {
    fail_input("{}:{}: not valid YAML: {}{}", origin, error.mark.line + 1, error.msg,
               text.find("\n\t") != std::string::npos ? "; indent with spaces: YAML knows no tabs" : "");
  }
  return std::move(flattening.entries);
}

std::vector<ConfigEntry> read_yaml(const std::filesystem::path& file) {
  constexpr std::size_t most_bytes = 16 << 20;
  return parse_yaml(read_file(file, most_bytes), file.string());
}

std::vector<ConfigEntry> entries_of(const nlohmann::ordered_json& config, const std::string& where) {
  std::vector<ConfigEntry> entries;
  const nlohmann::ordered_json flat = config.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (value.is_null() || pointer.empty()) continue;
    std::string key = pointer.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    entries.push_back({key, value.is_string() ? value.get<std::string>() : value.dump(), where});
  }
  return entries;
}

ConfigEntry parse_assignment(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) fail_input("--set: '{}' has no value; expected key=value", text);
  return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)), "--set"};
}

std::string nearest_name(std::string_view name, std::span<const std::string> known) {
  constexpr std::size_t longest_name = 200;  // the distance takes the product of the lengths
  if (name.size() > longest_name) return "";
  std::string nearest;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;  // a larger distance is not a typing error
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(lower_case(name), lower_case(candidate));
    const bool nothing_in_common = distance >= std::max(name.size(), candidate.size());
    if (distance >= least || nothing_in_common) continue;
    least = distance;
    nearest = candidate;
  }
  return nearest.empty() ? only_longer_name(name, known) : nearest;
}

std::string unknown_name(std::string_view kind, std::string_view name, std::span<const std::string> known) {
  const std::string nearest = nearest_name(name, known);
  const std::string unknown = fmt::format("unknown {} '{}'; ", kind, name);
  return nearest.empty() ? fmt::format("{}known are {}", unknown, fmt::join(known, ", "))
                         : fmt::format("{}did you mean '{}'?", unknown, nearest);
}

std::vector<std::string> likely_keys(std::string_view key, std::span<const std::string> known,
                                     std::span<const UsualWord> words) {
  constexpr std::size_t most = 3;
  std::vector<std::string> likely;
  const auto add = [&](const std::string& one) {
    if (!one.empty() && likely.size() < most && std::ranges::find(likely, one) == likely.end()) likely.push_back(one);
  };
  std::string last = lower_case(last_part(key));
  std::ranges::replace(last, '-', '_');
  for (const std::string& one : known)
    if (last_part(one) == last) add(one);
  for (const UsualWord& word : words)
    if (word.word == last && std::ranges::find(known, word.key) != known.end()) add(std::string(word.key));
  if (!likely.empty()) return likely;
  add(nearest_name(key, known));
  std::vector<std::string> last_parts;
  for (const std::string& one : known) last_parts.emplace_back(last_part(one));
  const std::string nearest = nearest_name(last, last_parts);
  for (const std::string& one : known)
    if (!nearest.empty() && last_part(one) == nearest) add(one);
  return likely;
}

void fail_unknown_key(const ConfigEntry& entry, std::span<const std::string> known, std::span<const UsualWord> words) {
  const auto part =
      std::ranges::find_if(known, [&](const std::string& one) { return one.starts_with(entry.key + "."); });
  if (part != known.end())
    fail_input(
        "{}: '{}' is a part that holds keys, not a key; write them below it, such as '{}: …' with a space behind "
        "the colon",
        entry.where, entry.key, part->substr(entry.key.size() + 1));
  const std::vector<std::string> likely = likely_keys(entry.key, known, words);
  if (likely.empty())
    fail_input("{}: unknown key '{}'; 'headscope config' lists all keys", entry.where, excerpt(entry.key, 80));
  fail_input("{}: unknown key '{}'; did you mean {}?", entry.where, excerpt(entry.key, 80),
             fmt::format("'{}'", fmt::join(likely, "' or '")));
}

std::string yaml_of(const nlohmann::ordered_json& object) {
  YAML::Emitter out;
  emit(out, object);
  return std::string(out.c_str()) + "\n";
}

}  // namespace headscope
