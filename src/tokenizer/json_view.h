// Reads fields of JSON objects; errors say where the value stands: "x/tokenizer.json: pre_tokenizer.pretokenizers[1]".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace headscope {

// A value of a document that lives longer. All functions throw Error(Fault::input) with the place when a value is
// missing or of another kind. A null counts as missing.
class JsonView {
 public:
  JsonView(const nlohmann::json& value, std::string origin, std::string path = {})
      : value_(&value), origin_(std::move(origin)), path_(std::move(path)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  [[nodiscard]] std::string place() const { return path_.empty() ? origin_ : origin_ + ": " + path_; }

  // The value under a key; nothing when it is missing.
  [[nodiscard]] std::optional<JsonView> find(std::string_view key) const;
  [[nodiscard]] JsonView at(std::string_view key) const;
  [[nodiscard]] std::vector<JsonView> elements() const;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] std::uint32_t number(std::uint32_t most) const;

  [[nodiscard]] std::string text(std::string_view key) const { return at(key).text(); }
  [[nodiscard]] bool flag(std::string_view key, std::optional<bool> without = {}) const;
  [[nodiscard]] std::uint32_t number(std::string_view key, std::uint32_t most) const { return at(key).number(most); }

  [[noreturn]] void fail(std::string_view expected) const;

 private:
  const nlohmann::json* value_;
  std::string origin_, path_;
};

}  // namespace headscope
