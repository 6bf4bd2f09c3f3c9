#include "study/measured_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

namespace headscope {
namespace {

using nlohmann::ordered_json;

// Null where it is not there.
ordered_json member_of(const ordered_json& object, const char* key) {
  return object.is_object() && object.contains(key) ? object[key] : ordered_json();
}

ordered_json first_blocks(const ordered_json& batch) {
  constexpr std::int64_t most = 1 << 20;  // that train.batch may be
  ordered_json blocks;
  if (!batch.is_number_integer()) return blocks;
  for (std::int64_t block = 0; block < std::min(batch.get<std::int64_t>(), most); ++block) blocks.push_back(block);
  return blocks;
}

bool are_both_known(const ordered_json& first, const ordered_json& second) {
  return !first.is_null() && !second.is_null();
}

// "train.batch is 4 and 8"; empty where the two are the same, or one is not known.
template <std::size_t n>
std::string difference_in(const char* part, const std::array<const char*, n>& keys, const ordered_json& first,
                          const ordered_json& second) {
  for (const char* key : keys) {
    const ordered_json one = member_of(first, key), other = member_of(second, key);
    if (are_both_known(one, other) && one != other)
      return fmt::format("{}.{} is {} and {}", part, key, one.dump(), other.dump());
  }
  return "";
}

constexpr std::array shape_keys = {"batch", "seq_len"};
// With these, two runs read as much of the same data: only then their hashes can be compared.
constexpr std::array amount_keys = {"tokens", "batch", "seq_len", "accumulation", "validation_batches"};
constexpr std::array data_keys = {"path",      "validation",  "validation_share",
                                  "tokenizer", "text_column", "language_seed"};

std::string difference_of_data(const MeasuredText& first, const MeasuredText& second) {
  const bool have_hashes = !first.hash.empty() && !second.hash.empty();
  if (have_hashes && first.hash == second.hash) return "";
  std::string difference = difference_in("data", data_keys, first.data, second.data);
  const bool same_amount =
      first.blocks == second.blocks && difference_in("train", amount_keys, first.train, second.train).empty();
  if (difference.empty() && have_hashes && same_amount) return "the hashes of their data differ";
  return difference;
}

}  // namespace

MeasuredText measured_text(const ordered_json& manifest) {
  MeasuredText text;
  const ordered_json config = member_of(manifest, "config");
  text.train = member_of(config, "train");
  text.data = member_of(config, "data");
  text.model = member_of(config, "model");
  text.optim = member_of(config, "optim");
  if (!text.train.is_object() || !text.data.is_object()) return {};  // it trained nothing
  text.blocks = member_of(member_of(manifest, "held_out"), "probe_blocks");
  if (text.blocks.is_null()) text.blocks = first_blocks(member_of(text.train, "batch"));
  const ordered_json inputs = member_of(manifest, "inputs_xxh3_128");
  if (inputs.is_object() && inputs.size() == 1 && inputs.front().is_string())
    text.hash = inputs.front().get<std::string>();
  return text;
}

std::string difference_of(const MeasuredText& first, const MeasuredText& second) {
  std::string difference = difference_in("train", shape_keys, first.train, second.train);
  if (difference.empty()) difference = difference_of_data(first, second);
  if (!difference.empty() || first.blocks == second.blocks) return difference;
  difference = difference_in("train", std::array{"tokens"}, first.train, second.train);
  return difference.empty() ? "other blocks of the validation text" : difference;
}

std::string other_settings(const MeasuredText& first, const MeasuredText& second) {
  std::vector<std::string> found;
  const auto add = [&](const char* part, const std::string& key, const ordered_json& one, const ordered_json& other) {
    if (are_both_known(one, other) && one != other)
      found.push_back(fmt::format("{}.{} ({} and {})", part, key, one.dump(), other.dump()));
  };
  for (const auto& [part, one, other] :
       {std::tuple("model", &first.model, &second.model), std::tuple("optim", &first.optim, &second.optim)})
    if (one->is_object())
      for (const auto& [key, value] : one->items()) add(part, key, value, member_of(*other, key.c_str()));
  for (const char* key : {"accumulation", "clip", "max_abs_penalty"})
    add("train", key, member_of(first.train, key), member_of(second.train, key));
  return fmt::format("{}", fmt::join(found, ", "));
}

}  // namespace headscope
