#include "experiments/parity.h"

#include <algorithm>
#include <map>

#include "formats/npz.h"
#include "model/load.h"
#include "ops/attention.h"
#include "ops/device.h"

namespace headscope {
namespace {

// What two float32 implementations of one model may differ by, where values are about 1.
struct Limit {
  const char* name;
  double limit;
};
constexpr Limit layer_limits[] = {
    {"q_pre", 2e-5}, {"k_pre", 2e-5}, {"q_post", 2e-5}, {"k_post", 2e-5}, {"entropy", 1e-5}};
constexpr Limit logits_limit = {"logits", 5e-5};

at::Tensor float_array(const Npz& reference, const std::string& name) {
  const NumpyArray array = reference.get(name);
  const at::Tensor values = at::empty(array.shape, at::kFloat);
  read_floats(array.view(), 0, {values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel())});
  return values;
}

// [b, t], checked: the model has every token, and the sequences have one at least.
at::Tensor input_tokens(const Npz& reference, const std::string& origin, std::int64_t vocabulary) {
  const NumpyArray array = reference.get("input_ids");
  if (!is_integer(array.type)) fail_input("{}: input_ids holds {}; expected integers", origin, type_name(array.type));
  const std::vector<std::int64_t> ids = read_integers(array.view());
  if (array.shape.size() != 2 || ids.empty())
    fail_input("{}: input_ids has shape {}; expected sequences of tokens, [batch, time]", origin,
               shape_text(array.shape));
  for (const std::int64_t id : ids)
    if (id < 0 || id >= vocabulary)
      fail_input("{}: input_ids holds {}; the model's vocabulary is {}", origin, id, vocabulary);
  return at::tensor(ids, at::kLong).view(array.shape);
}

// Entropy of every row of attention, nats: [b, heads, t].
at::Tensor row_entropies(const HeadVectors& vectors) {
  const at::Tensor q = vectors.q_rotated_bthd.to(at::kDouble), k = vectors.k_rotated_bthd.to(at::kDouble);
  constexpr std::int64_t tile = 64;  // rows whose scores exist at a time
  std::vector<at::Tensor> parts;
  for (std::int64_t first = 0; first < q.size(1); first += tile) {
    const std::int64_t count = std::min(tile, q.size(1) - first);
    parts.push_back(at::special_entr(attention_probabilities(q, k, vectors.scores, first, count)).sum(-1));
  }
  return at::cat(parts, 2);
}

class Comparison {
 public:
  Comparison(const Npz& reference, std::string origin) : origin_(std::move(origin)) {
    for (const Limit& limit : layer_limits) add(reference, limit);
    add(reference, logits_limit);
  }

  // Before anything is computed.
  void check_shapes(const DecoderConfig& model, const at::Tensor& tokens_bt) const {
    const std::int64_t b = tokens_bt.size(0), t = tokens_bt.size(1);
    for (const char* name : {"q_pre", "q_post"}) check_shape(name, {model.layers, b, model.heads, t, model.d_k});
    for (const char* name : {"k_pre", "k_post"}) check_shape(name, {model.layers, b, model.kv_heads, t, model.d_k});
    check_shape("entropy", {model.layers, b, model.heads, t});
    check_shape(logits_limit.name, {b, t, model.vocabulary});
  }

  [[nodiscard]] bool has(std::string_view name) const { return arrays_.contains(name); }

  // `values` are those of one layer, as the reference has them below its first dimension.
  void compare_layer(Parity& result, const char* name, std::int64_t layer, const at::Tensor& values) const {
    const auto found = arrays_.find(name);
    if (found == arrays_.end()) return;
    push(result, name, static_cast<int>(layer), found->second.values[layer], values);
  }

  void compare_logits(Parity& result, const at::Tensor& values) const {
    const auto found = arrays_.find(logits_limit.name);
    if (found == arrays_.end()) return;
    push(result, logits_limit.name, -1, found->second.values, values);
  }

  [[nodiscard]] std::vector<std::string> not_there() const {
    std::vector<std::string> names;
    for (const Limit& limit : layer_limits)
      if (!arrays_.contains(limit.name)) names.emplace_back(limit.name);
    if (!arrays_.contains(logits_limit.name)) names.emplace_back(logits_limit.name);
    return names;
  }

 private:
  struct Expected {
    at::Tensor values;
    double tolerance;
  };

  void add(const Npz& reference, const Limit& limit) {
    if (!reference.contains(limit.name)) return;
    const at::Tensor values = float_array(reference, limit.name);
    if (!at::isfinite(values).all().item<bool>())
      fail_input("{}: {} holds NaN or infinity; expected numbers to compare with", origin_, limit.name);
    const double square = values.numel() == 0 ? 0 : values.to(at::kDouble).square().mean().item<double>();
    arrays_[limit.name] = {values, limit.limit * std::max(1.0, std::sqrt(square))};
  }

  void check_shape(const char* name, const std::vector<std::int64_t>& shape) const {
    const auto found = arrays_.find(name);
    if (found != arrays_.end() && found->second.values.sizes() != at::IntArrayRef(shape))
      fail_input("{}: {} has shape {}; the model gives {}", origin_, name,
                 shape_text(found->second.values.sizes().vec()), shape_text(shape));
  }

  void push(Parity& result, const char* name, int layer, const at::Tensor& expected, const at::Tensor& values) const {
    const at::Tensor difference = (values.cpu().to(at::kDouble) - expected.to(at::kDouble)).abs();
    result.rows.push_back({name, layer, difference.max().item<double>(), arrays_.at(name).tolerance});
  }

  std::string origin_;
  std::map<std::string, Expected, std::less<>> arrays_;
};

}  // namespace

Parity compare_with_reference(const ParityOptions& options, Console& console) {
  const at::NoGradGuard no_gradients;
  const std::string origin = options.reference.string();
  const Npz reference(options.reference);
  const ComputeDevice device = choose_device(options.device);
  const LoadedModel loaded = load_model(options.model, device.device);
  for (const std::string& warning : loaded.warnings) console.warn(warning);
  const Decoder& model = loaded.model;
  const at::Tensor tokens_bt = input_tokens(reference, origin, model.config.vocabulary).to(device.device);
  const Comparison comparison(reference, origin);
  comparison.check_shapes(model.config, tokens_bt);
  Parity result{.model = options.model.string(),
                .reference = origin,
                .title = title_of(loaded),
                .rows = {},
                .not_there = comparison.not_there()};
  const auto heads_first = [](const at::Tensor& x_bthd) { return x_bthd.transpose(1, 2); };
  const at::Tensor hidden_btm =
      final_hidden(model, tokens_bt, at::kFloat, {.observe = [&](std::int64_t layer, const HeadVectors& vectors) {
                     comparison.compare_layer(result, "q_pre", layer, heads_first(vectors.q_bthd));
                     comparison.compare_layer(result, "k_pre", layer, heads_first(vectors.k_bthd));
                     comparison.compare_layer(result, "q_post", layer, heads_first(vectors.q_rotated_bthd));
                     comparison.compare_layer(result, "k_post", layer, heads_first(vectors.k_rotated_bthd));
                     if (comparison.has("entropy"))
                       comparison.compare_layer(result, "entropy", layer, row_entropies(vectors));
                   }});
  comparison.compare_logits(result, next_token_logits(model, hidden_btm));
  if (result.rows.empty())
    fail_input("{}: holds nothing to compare; expected one at least of {}", origin, fmt::join(result.not_there, ", "));
  return result;
}

}  // namespace headscope
