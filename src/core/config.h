// Options structs that can be set from YAML, from flags and from --set key=value, all by the same rules.
//
// A struct describes its fields once:
//   template <class Self, class Visit> static void fields(Self& self, Visit&& visit) {
//     visit("seed", self.seed, "Seed of every random choice");
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

// What a field of this type accepts, for messages: "a whole number".
template <class T>
std::string expected_value() {
  if constexpr (IsOptional<T>::value)
    return expected_value<typename T::value_type>();
  else if constexpr (std::is_enum_v<T>)
    return fmt::format("one of {}", fmt::join(EnumNames<T>::names, ", "));
  else if constexpr (std::is_same_v<T, bool>)
    return "true or false";
  else if constexpr (std::is_unsigned_v<T>)
    return "a whole number, not negative";
  else if constexpr (std::is_integral_v<T>)
    return "a whole number";
  else if constexpr (std::is_floating_point_v<T>)
    return "a finite number";
  else
    return "text";
}

// False when the text is not such a value.
template <class T>
bool parse_value(std::string_view text, T& value) {
  if constexpr (IsOptional<T>::value) {
    return parse_value(text, value.emplace());
  } else if constexpr (std::is_enum_v<T>) {
    for (std::size_t i = 0; i < EnumNames<T>::names.size(); ++i) {
      if (EnumNames<T>::names[i] != text) continue;
      value = static_cast<T>(i);
      return true;
    }
    return false;
  } else if constexpr (std::is_same_v<T, bool>) {
    value = text == "true";
    return text == "true" || text == "false";
  } else if constexpr (std::is_arithmetic_v<T>) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return false;
    if constexpr (std::is_floating_point_v<T>) return std::isfinite(value);
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

// Throws Error(Fault::input): "where: unknown key 'sed'; did you mean 'seed'?"
[[noreturn]] void fail_unknown_key(const ConfigEntry& entry, std::span<const std::string> known);

template <class Options>
std::vector<std::string> field_names(const Options& options) {
  std::vector<std::string> names;
  Options::fields(options, [&](const char* name, const auto&, const char*) { names.emplace_back(name); });
  return names;
}

// The value of one field; null when there is none of that name.
template <class Options>
nlohmann::json value_at(const Options& options, std::string_view key) {
  nlohmann::json found;
  Options::fields(options, [&](const char* name, const auto& value, const char*) {
    if (key == name) found = json_value(value);
  });
  return found;
}

// Sets one field; an unknown key or a value of the wrong type throws Error(Fault::input) naming the place.
template <class Options>
void apply(Options& options, const ConfigEntry& entry) {
  bool known = false;
  Options::fields(options, [&](const char* name, auto& value, const char*) {
    if (entry.key != name) return;
    known = true;
    using T = std::remove_reference_t<decltype(value)>;
    if (parse_value(entry.value, value)) return;
    if constexpr (std::is_enum_v<T>)
      fail_input("{}: {}", entry.where, unknown_name(entry.key, entry.value, EnumNames<T>::names));
    else
      fail_input("{}: '{}' is '{}'; expected {}", entry.where, entry.key, entry.value, expected_value<T>());
  });
  if (!known) fail_unknown_key(entry, field_names(options));
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
  Options::fields(options, [&](std::string_view name, const auto& value, const char*) {
    nlohmann::ordered_json* place = &object;
    for (std::size_t dot; (dot = name.find('.')) != std::string_view::npos; name.remove_prefix(dot + 1))
      place = &(*place)[std::string(name.substr(0, dot))];
    (*place)[std::string(name)] = json_value(value);
  });
  return object;
}

std::string yaml_of(const nlohmann::ordered_json& object);

}  // namespace headscope
