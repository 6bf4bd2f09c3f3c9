#include "model/stored_weights.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <set>

#include "core/error.h"

namespace headscope {
namespace {

// "a, b, c and 7 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most_named = 8;
  const std::string named =
      fmt::format("{}", fmt::join(std::span(names).first(std::min(most_named, names.size())), ", "));
  return names.size() <= most_named ? named : fmt::format("{} and {} more", named, names.size() - most_named);
}

// The rows of our parameter that each of its tensors has.
std::vector<std::int64_t> rows_of_parts(const DecoderConfig& config, const StoredNames& stored, std::int64_t rows) {
  if (stored.names.size() > 1) return {config.query_rows(), config.key_rows(), config.key_rows()};
  const bool half = stored.rows == StoredRows::first_half || stored.rows == StoredRows::second_half;
  return {half ? 2 * rows : rows};
}

void check_tensor(const StoredWeights& weights, const TensorView& tensor, const std::vector<std::int64_t>& expected) {
  if (tensor.shape != expected)
    fail_input("{}: {} has shape {}, the model's has {}", weights.origin, excerpt(tensor.name),
               shape_text(tensor.shape), shape_text(expected));
  if (is_integer(tensor.type))
    fail_input("{}: {} has type {}; expected floating-point weights", weights.origin, excerpt(tensor.name),
               type_name(tensor.type));
}

bool all_numbers(std::span<const float> values) {
  constexpr std::uint32_t exponent = 0x7f800000;  // all its bits are set in NaN and in infinities
  bool found = false;                             // an OR without branches: the compiler vectorises it
  for (const float value : values) found |= (std::bit_cast<std::uint32_t>(value) & exponent) == exponent;
  return !found;
}

// Converts a whole tensor into `target`: float32 on the CPU, contiguous. Returns whether all values are finite.
bool convert(const TensorView& tensor, const at::Tensor& target) {
  constexpr std::int64_t values_at_once = 1 << 16;  // a multiple of every block
  const std::span<float> out(target.mutable_data_ptr<float>(), static_cast<std::size_t>(target.numel()));
  const std::int64_t pieces = (target.numel() + values_at_once - 1) / values_at_once;
  std::atomic<bool> finite = true;
  at::parallel_for(0, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    const auto first = static_cast<std::size_t>(begin * values_at_once);
    const auto last = std::min(out.size(), static_cast<std::size_t>(end * values_at_once));
    read_floats(tensor, first, out.subspan(first, last - first));
    if (!all_numbers(out.subspan(first, last - first))) finite = false;
  });
  return finite;
}

TensorView half_of(const TensorView& tensor, bool second) {
  TensorView half = tensor;
  half.shape[0] /= 2;
  half.bytes = tensor.bytes.subspan(second ? tensor.bytes.size() / 2 : 0, tensor.bytes.size() / 2);
  return half;
}

// Rows [head][q, k, v][d_k] to [q, k, v][head][d_k].
void regroup_heads(const DecoderConfig& config, const at::Tensor& stored, const at::Tensor& target) {
  target.view({3, config.heads, config.d_k, -1}).copy_(stored.view({config.heads, 3, config.d_k, -1}).transpose(0, 1));
}

// Rows [head][pair][2] to [head][2][pair].
void part_pairs(const DecoderConfig& config, const at::Tensor& stored, const at::Tensor& target) {
  const std::int64_t heads = target.size(0) / config.d_k, pairs = config.d_k / 2;
  target.view({heads, 2, pairs, -1}).copy_(stored.view({heads, pairs, 2, -1}).transpose(1, 2));
}

void fill(const StoredWeights& weights, const DecoderConfig& config, const StoredNames& stored,
          const at::Tensor& target, bool must_be_finite) {
  const auto read = [&](const TensorView& tensor, const at::Tensor& part) {
    if (!convert(tensor, part) && must_be_finite)
      fail_input("{}: {} holds NaN or infinity; expected finite weights", weights.origin, excerpt(tensor.name));
  };
  if (stored.rows == StoredRows::by_head) {
    const at::Tensor as_stored = at::empty_like(target);
    read(*weights.find(stored.names[0]), as_stored);
    regroup_heads(config, as_stored, target);
    return;
  }
  std::int64_t first = 0;
  for (std::size_t i = 0; i < stored.names.size(); ++i) {
    TensorView tensor = *weights.find(stored.names[i]);
    if (stored.rows == StoredRows::first_half || stored.rows == StoredRows::second_half)
      tensor = half_of(tensor, stored.rows == StoredRows::second_half);
    const at::Tensor part = target.narrow(0, first, tensor.shape[0]);
    first += tensor.shape[0];
    if (stored.rows != StoredRows::turned_pairs || i == 2) {
      read(tensor, part);
      continue;
    }
    const at::Tensor as_stored = at::empty_like(part);
    read(tensor, as_stored);
    part_pairs(config, as_stored, part);
  }
}

// The first of the candidates with which a tensor is there; the first of all where none is.
std::string first_found(const StoredWeights& weights, const std::vector<std::string_view>& candidates,
                        const std::function<std::string(std::string_view)>& name) {
  for (const std::string_view candidate : candidates)
    if (weights.find(name(candidate)) != nullptr) return std::string(candidate);
  return candidates.empty() ? "" : std::string(candidates.front());
}

bool same_values(const TensorView& a, const TensorView& b) {
  return a.type == b.type && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

// A head in the file of a model whose configuration ties it: the public library keeps one that differs.
void look_at_tied_head(const StoredWeights& weights, StoredModel& stored) {
  const std::string head = stored.head + ".weight";
  const TensorView* own = weights.find(head);
  if (!stored.config.tied_head || own == nullptr || stored.architecture->tensors.empty()) return;
  const std::string embedding =
      stored_names(*stored.architecture, stored.prefix, stored.head, "embedding.weight").names.front();
  const TensorView* tied = weights.find(embedding);
  if (tied == nullptr || same_values(*own, *tied)) return;
  stored.config.tied_head = false;
  stored.warnings.push_back(fmt::format(
      "{}: the configuration ties the head to the embedding, and {} has other values than {}; it is used as the head",
      weights.origin, head, embedding));
}

}  // namespace

StoredModel match_weights(const StoredWeights& weights, const Architecture& architecture, const DecoderConfig& config) {
  StoredModel stored{.architecture = &architecture, .config = config, .prefix = {}, .head = {}, .warnings = {}};
  stored.prefix = first_found(weights, architecture.prefixes, [&](std::string_view prefix) {
    return stored_names(architecture, prefix, "", "embedding.weight").names.front();
  });
  stored.head = first_found(weights, architecture.head_names,
                            [](std::string_view head) { return fmt::format("{}.weight", head); });
  look_at_tied_head(weights, stored);
  std::vector<std::string> missing;
  std::set<std::string, std::less<>> used;
  if (stored.config.tied_head) used.insert(stored.head + ".weight");  // the same values as the embedding's
  const Decoder shapes = empty_decoder(stored.config, at::kMeta);
  for_each_parameter(shapes, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    const StoredNames names = stored_names(architecture, stored.prefix, stored.head, name);
    const std::vector<std::int64_t> rows = rows_of_parts(stored.config, names, value.size(0));
    for (std::size_t i = 0; i < names.names.size(); ++i) {
      const TensorView* tensor = weights.find(names.names[i]);
      if (tensor == nullptr) {
        missing.push_back(names.names[i]);
        continue;
      }
      std::vector<std::int64_t> expected = value.sizes().vec();
      expected[0] = rows[i];
      check_tensor(weights, *tensor, expected);
      used.insert(names.names[i]);
    }
  });
  if (!missing.empty())
    fail_input("{}: lacks {} of the model: {}", weights.origin,
               missing.size() == 1 ? "a tensor" : fmt::format("{} tensors", missing.size()), some_of(missing));
  std::vector<std::string> unused;
  for (const std::string& name : weights.names)
    if (!used.contains(name)) unused.push_back(name);
  if (!unused.empty())
    stored.warnings.push_back(fmt::format(
        "{}: {} not used: {}", weights.origin,
        unused.size() == 1 ? "a tensor is" : fmt::format("{} tensors are", unused.size()), some_of(unused)));
  return stored;
}

void load_weights(const StoredWeights& weights, const StoredModel& stored, const Decoder& model) {
  const at::NoGradGuard no_gradients;
  const bool published = !stored.architecture->tensors.empty();  // a training of ours may have diverged
  for_each_parameter(model, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    const bool in_place = value.is_cpu() && value.scalar_type() == at::kFloat;
    const at::Tensor host = in_place ? value : at::empty(value.sizes(), at::kFloat);
    const StoredNames names = stored_names(*stored.architecture, stored.prefix, stored.head, name);
    fill(weights, model.config, names, host, published);
    if (!in_place) value.copy_(host);
  });
}

}  // namespace headscope
