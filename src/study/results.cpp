#include "study/results.h"

#include <fmt/format.h>

#include <cmath>

#include "core/atomic_file.h"

namespace headscope {
namespace {

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

}  // namespace

ordered_json results_json(const ConditionResults& results) {
  ordered_json object = {{"tag", results.tag},
                         {"tokens", results.tokens},
                         {"loss", results.loss},
                         {"val_loss", results.val_loss},
                         {"mean_pr", results.mean_pr},
                         {"layer_pr", layers_json(results.layer_pr)},
                         {"gamma_cv", layers_json(results.gamma_cv)}};
  if (results.gamma_final) object["gamma_final"] = layers_json(*results.gamma_final);
  return object;
}

std::string results_text(const ConditionResults& results) {
  return python_text(results_json(results));
}

ConditionResults read_results(const std::filesystem::path& file, std::string_view expected_tag) {
  return parse_results(read_file(file), file.string(), expected_tag);
}

}  // namespace headscope
