// The options of a published model: config.json, or the part of it that describes the text model.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/bounds.h"
#include "core/error.h"

namespace headscope {

// Values by name. A value that is null counts as absent. Every function throws Error(Fault::input) naming the file and
// the option: when it is absent and `without` is not given, when it is of another kind, and when it is out of its
// range.
class ModelOptions {
 public:
  // `place`: how the object is reached in the file, "text_config." for example.
  ModelOptions(const nlohmann::json& object, std::string origin, std::string place = "");

  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] bool mentions(std::string_view name) const;  // null, too
  [[nodiscard]] std::int64_t size(std::string_view name, const SizeRange& range) const;
  [[nodiscard]] std::int64_t size(std::string_view name, const SizeRange& range, std::int64_t without) const;
  [[nodiscard]] double number(std::string_view name, const NumberRange& range) const;
  [[nodiscard]] double number(std::string_view name, const NumberRange& range, double without) const;
  [[nodiscard]] bool flag(std::string_view name, bool without) const;
  [[nodiscard]] std::string text(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name, std::string_view without) const;
  // Of at least `least` values.
  [[nodiscard]] std::vector<double> numbers(std::string_view name, const NumberRange& range, std::size_t least) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view name, std::size_t least) const;
  [[nodiscard]] ModelOptions object(std::string_view name) const;

  // "config.json: rope_scaling.factor is 0.5; " and `expected`.
  [[noreturn]] void fail(std::string_view name, std::string_view expected) const;
  [[nodiscard]] const std::string& origin() const { return origin_; }
  [[nodiscard]] const nlohmann::json& raw() const { return object_; }

 private:
  [[nodiscard]] const nlohmann::json* find(std::string_view name) const;
  [[nodiscard]] const nlohmann::json& required(std::string_view name) const;

  const nlohmann::json& object_;
  std::string origin_, place_;
};

}  // namespace headscope
