// Options structs that can be set from YAML, from flags and from --set key=value, all by the same rules.
//
// A struct describes its fields once; a number may have a range:
//   template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
//     visit("seed", self.seed, "Seed of every random choice");
//     visit("train.batch", self.batch, "Sequences of one forward step", SizeRange{1, 1024, "sequences"});
//   }
// A name with dots ("train.lr") is a nested mapping in YAML.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/bounds.h"
#include "core/error.h"

namespace headscope {

// An enum that can be configured names its values, in order: template <> struct EnumNames<Variant> { static constexpr
// std::array<std::string_view, 2> names = {"seed", "diagonal"}; };
template <class Enum>
struct EnumNames;

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

// A number, or a word for the number that follows from other keys. It is written as it was given, so that a
// configuration shows which of the two it is. Word: struct Matched { static constexpr std::string_view text =
// "matched"; };
template <class Word>
struct NumberOr {
  std::optional<double> number = {};  // nothing: the word

  friend bool operator==(const NumberOr&, const NumberOr&) = default;
};
template <class T>
struct IsNumberOr : std::false_type {};
template <class Word>
struct IsNumberOr<NumberOr<Word>> : std::true_type {
  static constexpr std::string_view word = Word::text;
};

// What a field of this type accepts, for messages: "a whole number". `range` stands behind it: ", at least 0".
template <class T>
std::string expected_value(const std::string& range = "") {
  if constexpr (IsOptional<T>::value)
    return expected_value<typename T::value_type>(range);
  else if constexpr (IsNumberOr<T>::value)
    return fmt::format("a finite number{}, or {}", range, IsNumberOr<T>::word);
  else if constexpr (std::is_enum_v<T>)
    return fmt::format("one of {}", fmt::join(EnumNames<T>::names, ", "));
  else if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_unsigned_v<T>)
    return "a whole number, not negative, such as 42, 1e5 or 100k" + range;
  else if constexpr (std::is_integral_v<T>)
    return "a whole number, such as 42, 1e5 or 100k" + range;
  else if constexpr (std::is_floating_point_v<T>)
    return "a finite number" + range;
  else
    return "text" + range;
}

// true and false as YAML may have them: yes, no, on and off, too, in any case.
std::optional<bool> parse_choice(std::string_view text);

// "1e5", "100k", "1.5M", "2B", "1_000_000": at most 2^53, where every whole number is exact.
std::optional<double> parse_short_number(std::string_view text);

// False when the text is not such a value.
template <class T>
bool parse_value(std::string_view text, T& value) {
  if constexpr (IsOptional<T>::value) {
    return parse_value(text, value.emplace());
  } else if constexpr (IsNumberOr<T>::value) {
    if (text != IsNumberOr<T>::word) return parse_value(text, value.number.emplace());
    value.number.reset();
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    for (std::size_t i = 0; i < EnumNames<T>::names.size(); ++i) {
      if (EnumNames<T>::names[i] != text) continue;
      value = static_cast<T>(i);
      return true;
    }
    return false;
  } else if constexpr (std::is_same_v<T, bool>) {
    const std::optional<bool> choice = parse_choice(text);
    value = choice.value_or(false);
    return choice.has_value();
  } else if constexpr (std::is_arithmetic_v<T>) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc{} && end == text.data() + text.size()) {
      if constexpr (std::is_floating_point_v<T>) return std::isfinite(value);
      return true;
    }
    const std::optional<double> number = parse_short_number(text);
    if (!number || (std::is_unsigned_v<T> && *number < 0)) return false;
    if (static_cast<double>(static_cast<T>(*number)) != *number) return false;
    value = static_cast<T>(*number);
    return true;
  } else {
    value = std::string(text);
    return true;
  }
}

template <class T>
nlohmann::json json_value(const T& value) {
  if constexpr (IsOptional<T>::value)
    return value ? json_value(*value) : nlohmann::json();
  else if constexpr (IsNumberOr<T>::value)
    return value.number ? nlohmann::json(*value.number) : nlohmann::json(IsNumberOr<T>::word);
  else if constexpr (std::is_enum_v<T>)
    return EnumNames<T>::names[static_cast<std::size_t>(value)];
  else
    return value;
}

struct ConfigEntry {
  std::string key;    // dotted
  std::string value;  // text of a scalar; a sequence of scalars is joined by commas
  std::string where;  // "file.yaml:12", "--set"
};

// A YAML mapping as flat entries in order of appearance; entries that are null are left out. Errors name file and line.
std::vector<ConfigEntry> parse_yaml(const std::string& text, const std::string& origin);
std::vector<ConfigEntry> read_yaml(const std::filesystem::path& file);

// The entries that give the same options again, of a configuration that to_json made.
std::vector<ConfigEntry> entries_of(const nlohmann::ordered_json& config, const std::string& where);

// "key=value" of --set.
ConfigEntry parse_assignment(std::string_view text);

// The known name that looks most like `name`, whatever its case; empty when none is close.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

// The one way to refuse a name: "unknown key 'sed'; did you mean 'seed'?", or "…; known are seed, rate".
std::string unknown_name(std::string_view kind, std::string_view name, std::span<const std::string> known);
template <class Names>
std::string unknown_name(std::string_view kind, std::string_view name, const Names& known) {
  return unknown_name(kind, name, std::span<const std::string>(std::vector<std::string>(known.begin(), known.end())));
}

// What people who know other programs may write instead of a key.
struct UsualWord {
  std::string_view word, key;
};

// The known keys that may be meant, best first: the same last part, a usual word for it, a similar spelling. At most 3.
std::vector<std::string> likely_keys(std::string_view key, std::span<const std::string> known,
                                     std::span<const UsualWord> words);

// Throws Error(Fault::input): "where: unknown key 'sed'; did you mean 'seed'?"
[[noreturn]] void fail_unknown_key(const ConfigEntry& entry, std::span<const std::string> known,
                                   std::span<const UsualWord> words);

// What `work` returns; its error "train.batch is 0; …" becomes "file.yaml:3: train.batch is 0; …".
template <class Work>
auto at_place(const std::string& where, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(error.fault(), fmt::format("{}: {}", where, error.what()));
  }
}

// Those of an options struct that has `usual_words`.
template <class Options>
std::span<const UsualWord> usual_words_of() {
  if constexpr (requires { Options::usual_words(); }) return Options::usual_words();
  return {};
}

template <class Options>
std::vector<std::string> field_names(const Options& options) {
  std::vector<std::string> names;
  Options::fields(options,
                  [&](const char* name, const auto&, const char*, const auto&...) { names.emplace_back(name); });
  return names;
}

// The value of one field; null when there is none of that name.
template <class Options>
nlohmann::json value_at(const Options& options, std::string_view key) {
  nlohmann::json found;
  Options::fields(options, [&](const char* name, const auto& value, const char*, const auto&...) {
    if (key == name) found = json_value(value);
  });
  return found;
}

// Throws Error(Fault::input) when the value is out of its range.
template <class T, class... Range>
void check_field(std::string_view name, const T& value, const Range&... range) {
  if constexpr (IsOptional<T>::value)
    value ? check_field(name, *value, range...) : void();
  else if constexpr (IsNumberOr<T>::value)
    check_field(name, value.number, range...);
  else
    (check_range(name, value, range), ...);
}

// Sets one field; an unknown key, a value of the wrong type or out of its range throws Error(Fault::input) naming the
// place.
template <class Options>
void apply(Options& options, const ConfigEntry& entry) {
  bool known = false;
  Options::fields(options, [&](const char* name, auto& value, const char*, const auto&... range) {
    if (entry.key != name) return;
    known = true;
    using T = std::remove_reference_t<decltype(value)>;
    if (parse_value(entry.value, value)) return at_place(entry.where, [&] { check_field(name, value, range...); });
    if constexpr (std::is_enum_v<T>)
      fail_input("{}: {}", entry.where, unknown_name(entry.key, excerpt(entry.value), EnumNames<T>::names));
    else
      fail_input("{}: '{}' is '{}'; expected {}", entry.where, entry.key, excerpt(entry.value),
                 expected_value<T>((std::string() + ... + (", " + range_text(range)))));
  });
  if (!known) fail_unknown_key(entry, field_names(options), usual_words_of<Options>());
}

// Throws Error(Fault::input) naming the first field that is out of its range.
template <class Options>
void check_ranges(const Options& options) {
  Options::fields(options, [](const char* name, const auto& value, const char*, const auto&... range) {
    check_field(name, value, range...);
  });
}

// A key as `headscope config` and the docs show it.
struct ConfigKey {
  std::string key, value, range, meaning;  // the range says the unit
};
template <class Options>
std::vector<ConfigKey> config_keys(const Options& options) {
  std::vector<ConfigKey> keys;
  Options::fields(options, [&](const char* name, const auto& value, const char* meaning, const auto&... range) {
    using T = std::remove_cvref_t<decltype(value)>;
    const nlohmann::json shown = json_value(value);
    ConfigKey key{name,
                  shown.is_string() ? shown.get<std::string>()
                  : shown.is_null() ? ""
                                    : shown.dump(),
                  expected_value<T>(), meaning};
    ((key.range = short_range_text(range)), ...);
    if constexpr (IsNumberOr<T>::value && sizeof...(range) > 0)
      key.range += fmt::format(", or {}", IsNumberOr<T>::word);
    keys.push_back(std::move(key));
  });
  return keys;
}

// The defaults with the entries in their order.
template <class Options>
Options resolve_options(const std::vector<ConfigEntry>& entries) {
  Options options;
  for (const ConfigEntry& entry : entries) apply(options, entry);
  return options;
}

// The resolved configuration: as one JSON object (nested by dots) and as YAML that gives the same options when read.
template <class Options>
nlohmann::ordered_json to_json(const Options& options) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  Options::fields(options, [&](std::string_view name, const auto& value, const char*, const auto&...) {
    nlohmann::ordered_json* place = &object;
    for (std::size_t dot; (dot = name.find('.')) != std::string_view::npos; name.remove_prefix(dot + 1))
      place = &(*place)[std::string(name.substr(0, dot))];
    (*place)[std::string(name)] = json_value(value);
  });
  return object;
}

std::string yaml_of(const nlohmann::ordered_json& object);

}  // namespace headscope
