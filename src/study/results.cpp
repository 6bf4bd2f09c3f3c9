#include "study/results.h"

#include <cmath>

namespace headscope {
namespace {

using nlohmann::ordered_json;

// As Python's repr: a float that happens to be whole keeps its ".0".
std::string python_text(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string python_text(std::int64_t value) {
  return fmt::format("{}", value);
}

template <class Values>
std::string list_text(const Values& values) {
  std::string text = "[";
  for (const auto value : values) text.append(text.size() > 1 ? ", " : "").append(python_text(value));
  return text + "]";
}

std::string layers_text(const std::vector<Numbers>& layers) {
  std::string text = "{";
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    text += fmt::format("{}\"{}\": {}", layer == 0 ? "" : ", ", layer, list_text(layers[layer]));
  return text + "}";
}

}  // namespace

std::string to_results_text(const ConditionResults& results) {
  std::string text = fmt::format(
      R"({{"tag": {}, "tokens": {}, "loss": {}, "val_loss": {}, "mean_pr": {}, "layer_pr": {}, "gamma_cv": {})",
      ordered_json(results.tag).dump(), list_text(results.tokens), list_text(results.loss), list_text(results.val_loss),
      list_text(results.mean_pr), layers_text(results.layer_pr), layers_text(results.gamma_cv));
  if (results.gamma_final) text += ", \"gamma_final\": " + layers_text(*results.gamma_final);
  return text + "}";
}

ordered_json to_results_json(const ConditionResults& results) {
  return ordered_json::parse(to_results_text(results));
}

}  // namespace headscope
