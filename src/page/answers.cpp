#include "page/answers.h"

#include "core/json_text.h"
#include "heads/findings/findings.h"

namespace headscope {
namespace {

using nlohmann::ordered_json;

// What stands under a path of keys; null where it is not there.
const ordered_json& at_path(const ordered_json& object, std::initializer_list<const char*> keys) {
  static const ordered_json none;
  const ordered_json* place = &object;
  for (const char* key : keys) {
    if (!place->is_object() || !place->contains(key)) return none;
    place = &(*place)[key];
  }
  return *place;
}

std::string json_number(const ordered_json& value) {
  return number_text(value.is_number() ? value.get<double>() : missing);
}

// "−0.84 (95 % interval −0.952 to −0.53)"
std::string with_interval(const ordered_json& value, const ordered_json& low, const ordered_json& high) {
  if (!value.is_number()) return "";
  if (!low.is_number() || !high.is_number()) return json_number(value);
  return fmt::format("{} (95 % interval {})", json_number(value), interval_text(low.get<double>(), high.get<double>()));
}

// The main number of an answer, in words.
std::string number_of(std::string_view key, const ordered_json& answer) {
  if (key == split_question.key) {
    const ordered_json& share = at_path(answer, {"between_share"});
    return share.is_number() && share >= 0 && share <= 1
               ? fmt::format("Share of the variance that lies between heads: {}", percent_text(share.get<double>()))
               : "";
  }
  if (key == sharpness_question.key) {
    const std::string rho = with_interval(at_path(answer, {"overall", "rho"}), at_path(answer, {"overall", "low"}),
                                          at_path(answer, {"overall", "high"}));
    return rho.empty() ? "" : "Rank correlation of key norm and entropy: " + rho;
  }
  if (key == volume_question.key) {
    const std::string factor =
        with_interval(at_path(answer, {"qk_product", "mean"}), at_path(answer, {"qk_product", "low"}),
                      at_path(answer, {"qk_product", "high"}));
    return factor.empty() ? "" : "Growth of query norm times key norm: factor " + factor;
  }
  if (key == rank_question.key) {
    std::string text;
    const ordered_json& groups = at_path(answer, {"effective_rank", "k_pr"});
    if (!groups.is_object()) return "";
    for (const auto& [group, curve] : groups.items()) {
      const ordered_json &start = at_path(curve, {"start"}), &end = at_path(curve, {"end"});
      if (!end.is_number()) continue;
      text += text.empty() ? "Effective rank (k_pr): " : "; ";
      text += start.is_number() && start != end ? fmt::format("{} {} → {}", group, json_number(start), json_number(end))
                                                : fmt::format("{} {}", group, json_number(end));
    }
    return text;
  }
  return "";
}

bool is_count_below(const ordered_json& value, std::int64_t end) {
  return value.is_number_unsigned() && value.get<std::uint64_t>() < static_cast<std::uint64_t>(end);
}

// Heads that the answer names, at most three, as layer.head of query heads.
std::string named_heads(std::string_view key, const ordered_json& answer, const HeadCounts& counts) {
  const bool of_keys = key == rank_question.key;
  const ordered_json& list =
      of_keys ? at_path(answer, {"privileged_dimensions"}) : at_path(answer, {"clusters", "high_norm", "heads"});
  std::string heads;
  if (!list.is_array()) return heads;
  for (std::size_t i = 0; i < std::min<std::size_t>(list.size(), 3); ++i) {
    const ordered_json &layer = at_path(list[i], {"layer"}), &head = at_path(list[i], {"head"});
    const std::int64_t heads_of_a_layer = of_keys ? counts.key_heads : counts.query_heads;
    if (!is_count_below(layer, counts.layers) || !is_count_below(head, heads_of_a_layer)) continue;
    const std::int64_t shared = of_keys && counts.key_heads > 0 ? counts.query_heads / counts.key_heads : 1;
    heads += fmt::format("{}{}.{}", heads.empty() ? "" : ",", layer.get<std::int64_t>(),
                         head.get<std::int64_t>() * std::max<std::int64_t>(shared, 1));
  }
  return heads;
}

std::string view_of(std::string_view key, const ordered_json& answer, const HeadCounts& counts) {
  std::string view = "m=k_norm";
  if (key == sharpness_question.key) view = "m=entropy&x=k_norm&y=entropy";
  if (key == rank_question.key) view = "m=k_pr";
  if (key == volume_question.key) view = "m=qk_ratio&x=k_norm&y=q_norm";
  const std::string heads = named_heads(key, answer, counts);
  return heads.empty() ? view : view + "&h=" + heads;
}

}  // namespace

std::vector<Answer> answers_of(const ordered_json& summary, const HeadCounts& counts) {
  std::vector<Answer> answers;
  for (const Question& asked : questions) {
    const std::string key(asked.key);
    const ordered_json& answer = at_path(summary, {key.c_str()});
    const std::string sentence = text_at(answer, "sentence");
    if (sentence.empty()) continue;
    const bool course = at_path(answer, {"start"}) != at_path(answer, {"end"});
    const std::string_view question = course ? asked.question : asked.question_of_one;
    if (question.empty()) continue;
    Answer found{key, std::string(question), sentence, number_of(key, answer), {}, view_of(key, answer, counts)};
    const ordered_json& rules = at_path(summary, {"rules", key.c_str()});
    if (rules.is_object())
      for (const auto& [name, rule] : rules.items())
        if (rule.is_string()) found.rules.push_back(rule.get<std::string>());
    answers.push_back(std::move(found));
  }
  return answers;
}

std::vector<std::string> damaged_answers(const ordered_json& summary) {
  std::vector<std::string> keys;
  for (const Question& asked : questions) {
    const std::string key(asked.key);
    const ordered_json& answer = at_path(summary, {key.c_str()});
    if (!answer.is_null() && !at_path(answer, {"sentence"}).is_string()) keys.push_back(key);
  }
  return keys;
}

}  // namespace headscope
