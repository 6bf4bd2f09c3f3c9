#include <charconv>
#include <limits>
#include <set>

#include "core/error.h"
#include "core/missing.h"
#include "study/results.h"

namespace headscope {
namespace {

using nlohmann::json;

// Text out of the file as it may stand in a message: quoted, escaped, short.
std::string in_quotes(const std::string& text) {
  std::string shown = json(text).dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (shown.size() > 40) shown = shown.substr(0, 36) + "...\"";
  return shown;
}

// What stands in the file, before it is known to be whole.
struct Draft {
  using Layers = std::map<std::int64_t, Numbers>;
  std::optional<std::string> tag;
  std::optional<Integers> tokens;
  std::map<std::string, Numbers, std::less<>> series;  // loss, val_loss, mean_pr
  std::map<std::string, Layers, std::less<>> layers;   // layer_pr, gamma_cv, gamma_final
};

bool is_series(const std::string& field) {
  return field == "loss" || field == "val_loss" || field == "mean_pr";
}
bool is_layers(const std::string& field) {
  return field == "layer_pr" || field == "gamma_cv" || field == "gamma_final";
}
bool is_known(const std::string& field) {
  return field == "tag" || field == "tokens" || is_series(field) || is_layers(field);
}

// Takes the values as the parser meets them and refuses the first that is out of place: memory is never more than a few
// times the text, and no depth of nesting is followed.
class Reader : public nlohmann::json_sax<json> {
 public:
  explicit Reader(const std::string& origin) : origin_(origin) {}
  Draft draft;

  bool null() override { return number(missing, "null"); }
  bool boolean(bool value) override { return other(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
      return integer(static_cast<std::int64_t>(value));
    return number(static_cast<double>(value), fmt::format("{}", value));
  }
  bool number_float(number_float_t value, const string_t& text) override { return number(value, text); }
  bool string(string_t& value) override {
    if (skipping()) return true;
    if (depth_ == 1 && field_ == "tag") {
      draft.tag = value;
      return true;
    }
    return other("a text");
  }
  bool binary(binary_t&) override { return other("binary data"); }

  bool start_object(std::size_t) override {
    if (skipping()) return ++depth_, true;
    const bool expected = depth_ == 0 || (depth_ == 1 && is_layers(field_));
    if (!expected) return other("an object");
    if (depth_ == 1) draft.layers[field_];
    return ++depth_, true;
  }
  bool end_object() override { return --depth_, true; }

  bool start_array(std::size_t) override {
    if (skipping()) return ++depth_, true;
    if (depth_ == 1 && field_ == "tokens")
      draft.tokens.emplace();
    else if (depth_ == 1 && is_series(field_))
      target_ = &draft.series[field_];
    else if (depth_ == 2 && in_layer_)
      target_ = &draft.layers[field_][layer_];
    else
      return other("a list");
    in_list_ = true;
    return ++depth_, true;
  }
  bool end_array() override {
    if (!skipping()) in_list_ = false;
    return --depth_, true;
  }

  bool key(string_t& value) override {
    if (depth_ == 1) {
      if (is_known(value) && !seen_.insert(value).second) fail("field '{}' is there twice", value);
      field_ = value;
      skipped_ = !is_known(value);
      in_layer_ = false;
    } else if (!skipping()) {
      layer_ = layer_number(value);
      in_layer_ = true;
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int number_overflow = 406;
    if (error.id == number_overflow) fail("a number near byte {} is too large", position);
    fail("not valid JSON at byte {}: the file is damaged or incomplete", position);
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_input("{}: {}", origin_, fmt::format(format, std::forward<Args>(args)...));
  }

  [[nodiscard]] bool skipping() const { return depth_ > 0 && skipped_; }

  // "tokens[3]", "layer_pr["7"][2]", "the file"
  [[nodiscard]] std::string place() const {
    if (depth_ == 0) return "the file";
    std::string text = field_;
    if (in_layer_) text += fmt::format("[\"{}\"]", layer_);
    if (in_list_) text += fmt::format("[{}]", field_ == "tokens" ? draft.tokens->size() : target_->size());
    return text;
  }

  [[nodiscard]] std::string expected() const {
    if (depth_ == 0) return "one object";
    if (field_ == "tag") return "a text";
    if (in_list_) return field_ == "tokens" ? "a whole number" : "a number or null";
    if (is_layers(field_) && depth_ == 1) return "an object of layers";
    return "a list of numbers";
  }

  // A value that is not what the place is for.
  bool other(const std::string& found) {
    if (skipping()) return true;
    fail("{} is {}; expected {}", place(), found, expected());
  }

  bool integer(std::int64_t value) {
    if (!(in_list_ && !skipping() && field_ == "tokens"))
      return number(static_cast<double>(value), fmt::format("{}", value));
    Integers& tokens = *draft.tokens;
    if (value < 0) fail("{} is {}; expected a whole number, not negative", place(), value);
    if (!tokens.empty() && value < tokens.back())
      fail("{} is {}, less than {} before it; tokens never decrease", place(), value, tokens.back());
    tokens.push_back(value);
    return true;
  }

  bool number(double value, const std::string& text) {
    if (skipping()) return true;
    if (!in_list_ || field_ == "tokens") return other(text.size() > 40 ? text.substr(0, 40) + "..." : text);
    target_->push_back(value);
    return true;
  }

  [[nodiscard]] std::int64_t layer_number(const std::string& text) const {
    std::int64_t number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole = error == std::errc() && end == text.data() + text.size() && fmt::format("{}", number) == text;
    if (!whole || number < 0) fail("{} has the layer {}; expected \"0\", \"1\", ...", field_, in_quotes(text));
    if (draft.layers.at(field_).contains(number)) fail("{} has the layer \"{}\" twice", field_, number);
    return number;
  }

  const std::string& origin_;
  std::size_t depth_ = 0;  // 1 inside the file's object, 2 inside a field
  std::string field_;
  bool skipped_ = false;   // the field is not one that we know
  bool in_layer_ = false;  // a key of layer_pr, gamma_cv or gamma_final came last
  std::int64_t layer_ = 0;
  bool in_list_ = false;
  Numbers* target_ = nullptr;  // of the list, unless it is tokens
  std::set<std::string> seen_;
};

// Turns the draft into results, or says what is missing or does not fit.
class Assembly {
 public:
  Assembly(Draft draft, const std::string& origin) : draft_(std::move(draft)), origin_(origin) {}

  ConditionResults results() {
    ConditionResults results;
    if (!draft_.tag) fail_missing("tag");
    results.tag = *draft_.tag;
    if (std::find(condition_tags.begin(), condition_tags.end(), results.tag) == condition_tags.end())
      fail_input("{}: tag is {}; expected one of {}", origin_, in_quotes(results.tag), fmt::join(condition_tags, ", "));
    if (!draft_.tokens) fail_missing("tokens");
    if (draft_.tokens->empty()) fail_input("{}: tokens is empty: there are no probes", origin_);
    probes_ = draft_.tokens->size();
    results.tokens = std::move(*draft_.tokens);
    results.loss = series("loss");
    results.val_loss = series("val_loss");
    results.mean_pr = series("mean_pr");
    results.layer_pr = layers("layer_pr", probes_);
    if (results.layer_pr.empty()) fail_input("{}: layer_pr is empty: there are no layers", origin_);
    results.gamma_cv = layers("gamma_cv", probes_);
    check_count("gamma_cv", results.gamma_cv.size(), results.layer_pr.size());
    if (draft_.layers.contains("gamma_final")) {
      auto& of_layers = draft_.layers.at("gamma_final");
      results.gamma_final = layers("gamma_final", of_layers.empty() ? 0 : of_layers.begin()->second.size());
      check_count("gamma_final", results.gamma_final->size(), results.layer_pr.size());
    }
    return results;
  }

 private:
  [[noreturn]] void fail_missing(const std::string& field) const {
    fail_input("{}: field '{}' is missing", origin_, field);
  }

  Numbers series(const std::string& field) {
    const auto found = draft_.series.find(field);
    if (found == draft_.series.end()) fail_missing(field);
    if (found->second.size() != probes_)
      fail_input("{}: {} has {} values; expected {}, as many as tokens", origin_, field, found->second.size(), probes_);
    return std::move(found->second);
  }

  std::vector<Numbers> layers(const std::string& field, std::size_t length) {
    const auto found = draft_.layers.find(field);
    if (found == draft_.layers.end()) fail_missing(field);
    std::vector<Numbers> result;
    for (auto& [layer, values] : found->second) {
      if (layer != static_cast<std::int64_t>(result.size()))
        fail_input("{}: {} has no layer \"{}\" but has layer \"{}\"; expected all of 0, 1, ...", origin_, field,
                   result.size(), layer);
      if (values.size() != length)
        fail_input("{}: {}[\"{}\"] has {} values; expected {}, {}", origin_, field, layer, values.size(), length,
                   field == "gamma_final" ? "as many as layer 0" : "as many as tokens");
      result.push_back(std::move(values));
    }
    return result;
  }

  void check_count(const std::string& field, std::size_t count, std::size_t expected) const {
    if (count != 0 && count != expected)
      fail_input("{}: {} has {} layers; expected {}, as layer_pr", origin_, field, count, expected);
  }

  Draft draft_;
  const std::string& origin_;
  std::size_t probes_ = 0;
};

}  // namespace

ConditionResults parse_results(std::string_view text, const std::string& origin, std::string_view expected_tag) {
  Reader reader(origin);
  json::sax_parse(text.begin(), text.end(), &reader);
  ConditionResults results = Assembly(std::move(reader.draft), origin).results();
  if (!expected_tag.empty() && results.tag != expected_tag)
    fail_input("{}: tag is '{}'; expected '{}', the name of its folder", origin, results.tag, expected_tag);
  return results;
}

}  // namespace headscope
