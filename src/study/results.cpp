#include "study/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/atomic_file.h"
#include "core/bounds.h"
#include "core/config.h"
#include "core/missing.h"
#include "run/names.h"

namespace headscope {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// As Python's json.dump, which writes a whole float with ".0" and a space behind every comma and colon.
std::string python_text(const ordered_json& value) {
  if (value.is_structured()) {
    std::string text;
    for (const auto& [key, member] : value.items()) {
      if (!text.empty()) text += ", ";
      if (value.is_object()) text += fmt::format("\"{}\": ", key);
      text += python_text(member);
    }
    return value.is_object() ? "{" + text + "}" : "[" + text + "]";
  }
  if (!value.is_number_float()) return value.dump();
  const auto number = value.get<double>();
  if (!std::isfinite(number)) return "null";
  const std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

ordered_json layers_json(const std::vector<Numbers>& layers) {
  ordered_json object = ordered_json::object();
  for (std::size_t layer = 0; layer < layers.size(); ++layer) object[fmt::format("{}", layer)] = layers[layer];
  return object;
}

// Text of the file as a message shows it: quoted, escaped, short.
std::string in_quotes(const std::string& text) {
  const std::string shown = json(text).dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  return shown.size() > 40 ? shown.substr(0, 36) + "...\"" : shown;
}

constexpr std::string_view layer_prefix = "layer_";  // of a measure by layer

bool is_further_series(std::string_view name) {
  return std::ranges::find(further_series, name, &FurtherSeries::name) != further_series.end();
}

bool is_field(std::string_view name) {
  constexpr std::string_view names[] = {"tag",
                                        "tokens",
                                        "loss",
                                        "val_loss",
                                        "mean_pr",
                                        "layer_pr",
                                        "gamma_cv",
                                        "gamma_final",
                                        "updates",
                                        "adamw_lr",
                                        "gaussian",
                                        "jackknife_error",
                                        "layer_jackknife_error"};
  const std::string_view measure = name.starts_with(layer_prefix) ? name.substr(layer_prefix.size()) : name;
  return std::ranges::find(names, name) != std::end(names) || is_further_series(measure);
}

// Builds the document from the parser's events, without recursion. It keeps our fields only, and nothing that is nested
// deeper than they are: the document is a few times as large as the text at most. It refuses a key that occurs twice.
class DocumentBuilder : public nlohmann::json_sax<json> {
 public:
  explicit DocumentBuilder(const std::string& origin) : origin_(origin) {}
  json document;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return true; }  // JSON text has none
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return around_.pop_back(), true; }
  bool end_array() override { return around_.pop_back(), true; }

  bool key(string_t& name) override {
    const bool in_file = around_.size() == 1;
    behind_key_ = nullptr;
    if (around_.back() == nullptr || (in_file && !is_field(name))) return true;
    if (in_file) field_ = name;
    const auto [place, is_new] = around_.back()->emplace(name, nullptr);
    if (!is_new && in_file) fail_input("{}: field '{}' is there twice", origin_, name);
    if (!is_new) fail_input("{}: {} has the layer {} twice", origin_, field_, in_quotes(name));
    behind_key_ = &*place;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int number_overflow = 406;
    if (error.id == number_overflow) fail_input("{}: a number near byte {} is too large", origin_, position);
    fail_input("{}: not valid JSON at byte {}: the file is damaged or incomplete", origin_, position);
  }

 private:
  // The new value in the document; null when it is left out.
  json* put(json value) {
    json* around = around_.empty() ? nullptr : around_.back();
    json* place = around_.empty()      ? &document
                  : around == nullptr  ? nullptr
                  : around->is_array() ? &around->emplace_back()
                                       : behind_key_;
    if (place != nullptr) *place = std::move(value);
    return place;
  }
  bool add(json value) { return put(std::move(value)), true; }
  bool open(json value) {
    constexpr std::size_t deepest = 3;  // a list of a layer, in a field, in the file
    if (around_.empty() && value.is_array()) fail_input("{}: the file is a list; expected one object", origin_);
    json* place = put(std::move(value));
    around_.push_back(around_.size() < deepest ? place : nullptr);
    return true;
  }

  const std::string& origin_;
  std::vector<json*> around_;  // the lists and objects around the next value; null: what is in it is left out
  json* behind_key_ = nullptr;
  std::string field_;
};

// In the functions below, `place` is the file and the place in it: "QK/results.json: layer_pr["3"]".

[[noreturn]] void refuse(const std::string& place, const json& value, const char* expected) {
  const std::string found = value.is_string()   ? "a text"
                            : value.is_array()  ? "a list"
                            : value.is_object() ? "an object"
                                                : value.dump();
  fail_input("{} is {}; expected {}", place, found, expected);
}

std::string tag_at(const std::string& place, const json& tag) {
  if (!tag.is_string()) refuse(place, tag, "a text");
  const auto& text = tag.get_ref<const std::string&>();
  if (!is_condition_tag(text))
    fail_input("{} is {}; expected the name of a condition, such as {}", place, in_quotes(text), condition_tags[0]);
  return text;
}

Integers counts_at(const std::string& place, const json& list) {
  if (!list.is_array()) refuse(place, list, "a list of numbers");
  Integers counts;
  for (const json& value : list) {
    const auto count = value.is_number_integer() ? value.get<std::int64_t>() : -1;  // 2^63 and more become negative
    if (count < 0) refuse(fmt::format("{}[{}]", place, counts.size()), value, "a whole number, not negative");
    if (!counts.empty() && count < counts.back())
      fail_input("{}[{}] is {}, less than {} before it; tokens and updates never decrease", place, counts.size(), count,
                 counts.back());
    counts.push_back(count);
  }
  if (counts.empty()) fail_input("{} is empty: there are no probes", place);
  return counts;
}

double rate_at(const std::string& place, const json& value) {
  if (!value.is_number() || !(value.get<double>() > 0)) refuse(place, value, "a number above 0");
  return value.get<double>();
}

double number_at(const std::string& place, const json& value) {
  if (!value.is_number() && !value.is_null()) refuse(place, value, "a number or null");
  const double number = value.is_null() ? missing : value.get<double>();
  if (std::fabs(number) > largest_float)  // sums over layers and seeds stay finite
    fail_input("{} is {}; expected a number of at most {} in size", place, number, largest_float);
  return number;
}

// A list that had values has none at its end.
bool ends_missing(const Numbers& series) {
  return !std::isfinite(series.back()) &&
         std::ranges::any_of(series, [](double value) { return std::isfinite(value); });
}

Numbers numbers_at(const std::string& place, const json& list, std::size_t length, const char* as_many_as) {
  if (!list.is_array()) refuse(place, list, "a list of numbers");
  if (list.size() != length)
    fail_input("{} has {} values; expected {}, as many as {}", place, list.size(), length, as_many_as);
  Numbers numbers;
  for (const json& value : list) numbers.push_back(number_at(fmt::format("{}[{}]", place, numbers.size()), value));
  return numbers;
}

// `length` of the list of each layer; none: that of layer 0.
std::vector<Numbers> layers_at(const std::string& place, const json& object, std::optional<std::size_t> length) {
  if (!object.is_object()) refuse(place, object, "an object of layers");
  std::map<std::int64_t, const json*> by_number;
  for (const auto& [text, list] : object.items()) {
    std::int64_t number = -1;
    if (!parse_value(text, number) || number < 0 || fmt::format("{}", number) != text)
      fail_input("{} has the layer {}; expected \"0\", \"1\", ...", place, in_quotes(text));
    by_number[number] = &list;
  }
  std::vector<Numbers> layers;
  for (const auto& [number, list] : by_number) {
    if (number != static_cast<std::int64_t>(layers.size()))
      fail_input("{} has no layer \"{}\" but has layer \"{}\"; expected all of 0, 1, ...", place, layers.size(),
                 number);
    layers.push_back(numbers_at(fmt::format("{}[\"{}\"]", place, number), *list,
                                length.value_or(by_number.begin()->second->size()), length ? "tokens" : "layer 0"));
  }
  return layers;
}

// The participation ratio of n singular values is from 1 to n.
void check_pr(const std::string& place, const Numbers& series, double most) {
  constexpr double rounding = 1e-3;  // relative; far above that of float32
  for (std::size_t i = 0; i < series.size(); ++i)
    if (series[i] < 1 - rounding || series[i] > most * (1 + rounding))
      fail_input("{}[{}] is {}; expected a participation ratio, from 1 to {}", place, i, series[i], most);
}

void check_spread(const std::string& place, const Numbers& series) {
  for (std::size_t i = 0; i < series.size(); ++i)
    if (series[i] < 0) fail_input("{}[{}] is {}; expected a standard deviation, 0 or more", place, i, series[i]);
}

// d_k where the file says it, otherwise more than any model has.
double most_pr(const ConditionResults& results) {
  constexpr double any_model = 1e6;
  const bool has_gains = results.gamma_final && !results.gamma_final->empty() && !results.gamma_final->front().empty();
  return has_gains ? static_cast<double>(results.gamma_final->front().size()) : any_model;
}

void check_prs(const std::string& origin, const ConditionResults& results) {
  const double most = most_pr(results);
  const auto check = [&](std::string_view field, std::string_view of_layers, const Numbers& mean, const auto& layers) {
    check_pr(fmt::format("{}: {}", origin, field), mean, most);
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      check_pr(fmt::format("{}: {}[\"{}\"]", origin, of_layers, layer), layers[layer], most);
  };
  check(main_measure, "layer_pr", results.mean_pr, results.layer_pr);
  for (const FurtherSeries& one : further_series) {
    const auto found = results.measures.find(std::string(one.name));
    if (found == results.measures.end()) continue;
    if (one.is_rank)
      check(one.name, fmt::format("{}{}", layer_prefix, one.name), found->second.mean, found->second.layers);
    else
      check_spread(fmt::format("{}: {}", origin, one.name), found->second.mean);
  }
}

}  // namespace

bool has_diverged(const ConditionResults& results) {
  return !std::isfinite(results.mean_pr.back()) || ends_missing(results.loss) || ends_missing(results.val_loss);
}

std::int64_t last_sound_tokens(const ConditionResults& results) {
  bool has_loss = false, has_val_loss = false;
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < results.tokens.size(); ++i) {
    const bool loss = std::isfinite(results.loss[i]), val_loss = std::isfinite(results.val_loss[i]);
    if (std::isfinite(results.mean_pr[i]) && (loss || !has_loss) && (val_loss || !has_val_loss))
      tokens = results.tokens[i];
    has_loss = has_loss || loss;
    has_val_loss = has_val_loss || val_loss;
  }
  return tokens;
}

ordered_json results_json(const ConditionResults& results) {
  ordered_json object = {{"tag", results.tag},
                         {"tokens", results.tokens},
                         {"loss", results.loss},
                         {"val_loss", results.val_loss},
                         {"mean_pr", results.mean_pr},
                         {"layer_pr", layers_json(results.layer_pr)},
                         {"gamma_cv", layers_json(results.gamma_cv)}};
  if (results.gamma_final) object["gamma_final"] = layers_json(*results.gamma_final);
  if (results.updates) object["updates"] = *results.updates;
  if (results.adamw_lr) object["adamw_lr"] = *results.adamw_lr;
  for (const FurtherSeries& one : further_series) {
    const auto found = results.measures.find(std::string(one.name));
    if (found == results.measures.end()) continue;
    object[found->first] = found->second.mean;
    object[fmt::format("{}{}", layer_prefix, one.name)] = layers_json(found->second.layers);
  }
  const auto add = [&](const char* field, const auto& by_measure) {
    for (const auto& [name, value] : by_measure) object[field][name] = value;
  };
  add("gaussian", results.gaussian);
  add("jackknife_error", results.jackknife_error);
  add("layer_jackknife_error", results.layer_jackknife_error);
  return object;
}

std::string results_text(const ConditionResults& results) {
  return python_text(results_json(results));
}

ConditionResults read_results(const std::filesystem::path& file, std::string_view expected_tag) {
  return parse_results(read_file(file, most_results_bytes), file.string(), expected_tag);
}

ConditionResults parse_results(std::string_view text, const std::string& origin, std::string_view expected_tag) {
  // The library takes a zero byte for the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    fail_input("{}: not valid JSON at byte {}: it holds a zero byte; copy the file again", origin, zero);
  DocumentBuilder builder(origin);
  json::sax_parse(text.begin(), text.end(), &builder);
  const json& document = builder.document;
  if (!document.is_object()) refuse(origin + ": the file", document, "one object");
  const auto field = [&](const char* name, auto read, auto... length) {
    if (!document.contains(name)) fail_input("{}: field '{}' is missing", origin, name);
    return read(fmt::format("{}: {}", origin, name), document.at(name), length...);
  };
  const auto check_layers = [&](const char* name, std::size_t layers, std::size_t expected) {
    if (layers != 0 && layers != expected)
      fail_input("{}: {} has {} layers; expected {}, as layer_pr", origin, name, layers, expected);
  };
  ConditionResults results;
  results.tag = field("tag", tag_at);
  if (!expected_tag.empty() && results.tag != expected_tag)
    fail_input("{}: tag is '{}'; expected '{}', the name of its folder", origin, results.tag, expected_tag);
  results.tokens = field("tokens", counts_at);
  const std::size_t probes = results.tokens.size();
  results.loss = field("loss", numbers_at, probes, "tokens");
  results.val_loss = field("val_loss", numbers_at, probes, "tokens");
  results.mean_pr = field("mean_pr", numbers_at, probes, "tokens");
  results.layer_pr = field("layer_pr", layers_at, probes);
  if (results.layer_pr.empty()) fail_input("{}: layer_pr is empty: there are no layers", origin);
  results.gamma_cv = field("gamma_cv", layers_at, probes);
  check_layers("gamma_cv", results.gamma_cv.size(), results.layer_pr.size());
  if (document.contains("gamma_final")) {
    results.gamma_final = field("gamma_final", layers_at, std::nullopt);
    check_layers("gamma_final", results.gamma_final->size(), results.layer_pr.size());
  }
  if (document.contains("updates")) {
    results.updates = field("updates", counts_at);
    if (results.updates->size() != probes)
      fail_input("{}: updates has {} values; expected {}, as many as tokens", origin, results.updates->size(), probes);
  }
  if (document.contains("adamw_lr")) results.adamw_lr = field("adamw_lr", rate_at);
  for (const FurtherSeries& one : further_series) {
    const std::string name(one.name), of_layers = fmt::format("{}{}", layer_prefix, name);
    if (!document.contains(name)) continue;
    MeasureSeries& series = results.measures[name];
    series.mean = field(name.c_str(), numbers_at, probes, "tokens");
    series.layers = field(of_layers.c_str(), layers_at, probes);
    check_layers(of_layers.c_str(), series.layers.size(), results.layer_pr.size());
  }
  const auto by_measure = [&](const char* name, auto& values, auto read, auto... length) {
    if (!document.contains(name)) return;
    const json& object = document.at(name);
    if (!object.is_object()) refuse(fmt::format("{}: {}", origin, name), object, "an object of measures");
    for (const auto& [measure, value] : object.items())
      if (measure == main_measure || is_further_series(measure))
        values[measure] = read(fmt::format("{}: {}[\"{}\"]", origin, name, measure), value, length...);
  };
  by_measure("gaussian", results.gaussian, number_at);
  by_measure("jackknife_error", results.jackknife_error, number_at);
  by_measure("layer_jackknife_error", results.layer_jackknife_error, numbers_at, results.layer_pr.size(), "layers");
  check_prs(origin, results);
  return results;
}

}  // namespace headscope
