#include "tokenizer/json_view.h"

namespace headscope {

std::optional<JsonView> JsonView::find(std::string_view key) const {
  if (!value_->is_object()) fail("an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return std::nullopt;
  return JsonView(*found, origin_, path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
}

JsonView JsonView::at(std::string_view key) const {
  const auto found = find(key);
  if (!found) fail_input("{}: '{}' is missing", place(), key);
  return *found;
}

std::vector<JsonView> JsonView::elements() const {
  if (!value_->is_array()) fail("a list");
  std::vector<JsonView> views;
  views.reserve(value_->size());
  for (const auto& element : *value_) views.emplace_back(element, origin_, fmt::format("{}[{}]", path_, views.size()));
  return views;
}

std::string JsonView::text() const {
  if (!value_->is_string()) fail("a text");
  return value_->get<std::string>();
}

bool JsonView::flag() const {
  if (!value_->is_boolean()) fail("true or false");
  return value_->get<bool>();
}

bool JsonView::flag(std::string_view key, std::optional<bool> without) const {
  const auto found = find(key);
  return !found && without ? *without : at(key).flag();
}

std::uint32_t JsonView::number(std::uint32_t most) const {
  if (!value_->is_number_unsigned() || value_->get<std::uint64_t>() > most)
    fail(fmt::format("a whole number from 0 to {}", most));
  return value_->get<std::uint32_t>();
}

void JsonView::fail(std::string_view expected) const {
  const std::string shown =
      value_->is_structured() ? std::string(value_->is_object() ? "an object" : "a list")
                              : value_->dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  fail_input("{}: is {}; expected {}", place(), excerpt(shown, 60), expected);
}

}  // namespace headscope
