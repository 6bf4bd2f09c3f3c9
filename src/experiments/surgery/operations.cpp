#include "experiments/surgery/operations.h"

#include <algorithm>

#include "core/missing.h"
#include "core/random.h"

namespace headscope {
namespace {

// An edit of the layers named, which ascend; the keys of others stay as they are.
EditKeys in_layers(std::vector<std::int64_t> layers, std::function<at::Tensor(const at::Tensor&)> edit) {
  return [layers = std::move(layers), edit = std::move(edit)](std::int64_t layer, const at::Tensor& k_bthd) {
    return std::ranges::binary_search(layers, layer) ? edit(k_bthd) : k_bthd;
  };
}

// What an edit of one layer needs, made once: a mask or a projection.
struct LayerRemoval {
  at::Tensor removed_hd;      // bool
  at::Tensor projection_hdd;  // float64, onto what is kept
};

LayerRemoval layer_removal(const LayerDirections& directions, std::int64_t count) {
  if (!directions.basis_hdd.defined()) {
    const at::Tensor& axes_hd = directions.axes_hd;
    return {at::zeros_like(axes_hd, at::kBool).scatter_(1, axes_hd.narrow(1, 0, count), true), {}};
  }
  const at::Tensor kept_hdr = directions.basis_hdd.narrow(2, count, directions.basis_hdd.size(2) - count);
  return {{}, at::matmul(kept_hdr, kept_hdr.mT())};  // nothing kept: exactly zero
}

at::Tensor without(const at::Tensor& k_bthd, const LayerRemoval& removal) {
  if (removal.removed_hd.defined()) return k_bthd.masked_fill(removal.removed_hd, 0);
  const at::ScalarType type = k_bthd.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor kept_bthd = at::einsum("bthd,hde->bthe", {k_bthd.to(type), removal.projection_hdd.to(type)});
  return kept_bthd.to(k_bthd.scalar_type());
}

struct Operation {
  SurgeryBy by{};
  std::int64_t dimensions = 0;  // removed of each head
  std::int64_t bits = 0;        // 0: not rounded
  std::int64_t repeat = 0;
};

// The dimensions to remove. Shares of a small head can be the same number of them, which is measured once.
std::vector<std::int64_t> counts_of(const SurgeryOptions& options, std::int64_t d) {
  std::vector<std::int64_t> counts;
  for (const double share : shares_of(options)) {
    const std::int64_t count = removed_dimensions(share, d);
    if (counts.empty() || counts.back() != count) counts.push_back(count);
  }
  return counts;
}

std::int64_t repeats_of(SurgeryBy by, const SurgeryOptions& options) {
  return by == SurgeryBy::random ? options.repeats : 1;
}

std::vector<Operation> operations_of(const SurgeryOptions& options, std::int64_t d) {
  std::vector<Operation> operations;
  for (const SurgeryBy by : bys_of(options)) {
    if (!removes(by))
      for (const std::int64_t bits : bits_of(options)) operations.push_back({by, 0, bits, 0});
    else
      for (std::int64_t repeat = 0; repeat < repeats_of(by, options); ++repeat)
        for (const std::int64_t count : counts_of(options, d)) operations.push_back({by, count, 0, repeat});
  }
  return operations;
}

// The edits of operations, which come in order: the directions of the last one are kept.
class KeyEdits {
 public:
  KeyEdits(const Decoder& model, const at::Tensor& tokens_bt, const SurgeryOptions& options)
      : model_(model), tokens_bt_(tokens_bt), options_(options), layers_(layers_of(options, model.config.layers)) {}

  EditKeys edit(const Operation& operation) {
    if (operation.by == SurgeryBy::tensor) return quantisation(operation.bits, ScaleOf::tensor, layers_);
    if (operation.by == SurgeryBy::channel) return quantisation(operation.bits, ScaleOf::channel, layers_);
    if (operation.by != by_ || operation.repeat != repeat_) {
      directions_ = directions(operation.by, operation.repeat);
      by_ = operation.by;
      repeat_ = operation.repeat;
    }
    return removal(directions_, operation.dimensions, layers_);
  }

  [[nodiscard]] EditKeys zero_keys() const {
    return in_layers(layers_, [](const at::Tensor& k_bthd) { return at::zeros_like(k_bthd); });
  }

 private:
  [[nodiscard]] Directions directions(SurgeryBy by, std::int64_t repeat) const {
    if (by == SurgeryBy::gain) return gain_directions(model_, options_.order);
    if (by == SurgeryBy::singular) return singular_directions(model_, tokens_bt_, options_.order);
    return random_directions(model_, mixed_seed(options_.seed, static_cast<std::uint64_t>(repeat)));
  }

  const Decoder& model_;
  const at::Tensor& tokens_bt_;
  const SurgeryOptions& options_;
  std::vector<std::int64_t> layers_;
  Directions directions_;
  std::optional<SurgeryBy> by_;  // of the directions
  std::int64_t repeat_ = 0;
};

std::string order_name(SurgeryBy by, const SurgeryOptions& options) {
  if (!removes(by)) return "";
  return by == SurgeryBy::random ? "random" : json_value(options.order).get<std::string>();
}

Table table_of(const std::vector<Operation>& operations, const Numbers& losses, double unmodified,
               const SurgeryOptions& options, std::int64_t d) {
  Rows<std::string, std::string, std::string, double, std::int64_t, std::int64_t, std::int64_t, double, double> rows(
      {"method", "by", "order", "share_removed", "dimensions", "bits", "repeat", "loss", "loss_change"});
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const auto& [by, dimensions, bits, repeat] = operations[i];
    const double share = removes(by) ? static_cast<double>(dimensions) / static_cast<double>(d) : missing;
    rows.add(removes(by) ? "remove" : "quantise", json_value(by).get<std::string>(), order_name(by, options), share,
             dimensions, bits, repeat, losses[i], losses[i] - unmodified);
  }
  return rows.take();
}

}  // namespace

Directions gain_directions(const Decoder& model, RemovalOrder order) {
  Directions directions;
  for (const DecoderLayer& layer : model.layers) {
    const at::Tensor gain = effective_qk_gain(model, layer.k_gain).detach().abs();
    const DecoderConfig& c = model.config;  // one gain vector for all heads, or one for each
    const at::Tensor gain_hd =
        gain.numel() == c.d_k ? gain.expand({c.kv_heads, c.d_k}) : gain.view({c.kv_heads, c.d_k});
    const bool descending = order == RemovalOrder::largest;
    directions.push_back({at::argsort(gain_hd, /*stable=*/true, /*dim=*/1, descending), {}});
  }
  return directions;
}

Directions singular_directions(const Decoder& model, const at::Tensor& tokens_bt, RemovalOrder order) {
  const at::NoGradGuard no_gradients;
  const at::ScalarType type = model.embedding.scalar_type();
  Directions directions;
  const auto add = [&](std::int64_t, const HeadVectors& vectors) {
    const at::Tensor k_hnd = vectors.k_bthd.flatten(0, 1).transpose(0, 1).to(at::kDouble);
    const auto [squares_hd, basis_hdd] = at::linalg_eigh(at::bmm(k_hnd.mT(), k_hnd).cpu());  // ascending
    const at::Tensor ordered_hdd = order == RemovalOrder::largest ? basis_hdd.flip(2) : basis_hdd;
    directions.push_back({{}, ordered_hdd.to(k_hnd.device())});
  };
  final_hidden(model, tokens_bt, type, {.observe = add});
  return directions;
}

Directions random_directions(const Decoder& model, std::uint64_t seed) {
  const DecoderConfig& c = model.config;
  NumpyGenerator generator(seed);
  Directions directions;
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const at::Tensor axes_hd = at::empty({c.kv_heads, c.d_k}, at::kLong);
    for (std::int64_t head = 0; head < c.kv_heads; ++head) {
      const std::vector<std::int64_t> axes = generator.choice(c.d_k, c.d_k);
      std::copy(axes.begin(), axes.end(), axes_hd.data_ptr<std::int64_t>() + head * c.d_k);
    }
    directions.push_back({axes_hd.to(model.embedding.device()), {}});
  }
  return directions;
}

std::int64_t removed_dimensions(double share, std::int64_t d) {
  return std::llround(share * static_cast<double>(d));
}

EditKeys removal(const Directions& directions, std::int64_t count, const std::vector<std::int64_t>& layers) {
  if (count == 0) return {};
  std::map<std::int64_t, LayerRemoval> removals;
  for (const std::int64_t layer : layers)
    removals[layer] = layer_removal(directions[static_cast<std::size_t>(layer)], count);
  return [removals = std::move(removals)](std::int64_t layer, const at::Tensor& k_bthd) {
    const auto found = removals.find(layer);
    return found == removals.end() ? k_bthd : without(k_bthd, found->second);
  };
}

at::Tensor quantised(const at::Tensor& k_bthd, std::int64_t bits, ScaleOf scale_of) {
  const at::Tensor k = k_bthd.scalar_type() == at::kDouble ? k_bthd : k_bthd.to(at::kFloat);
  const at::Tensor largest =
      scale_of == ScaleOf::tensor ? k.abs().amax() : k.abs().amax({0, 1}, /*keepdim=*/true);  // [] or [1, 1, h, d]
  const auto levels = static_cast<double>((std::int64_t{1} << (bits - 1)) - 1);
  const at::Tensor scale = largest / levels;
  const at::Tensor rounded = at::round(k / scale).clamp(-levels, levels) * scale;
  return at::where(scale > 0, rounded, at::zeros_like(k)).to(k_bthd.scalar_type());
}

EditKeys quantisation(std::int64_t bits, ScaleOf scale_of, const std::vector<std::int64_t>& layers) {
  return in_layers(layers, [=](const at::Tensor& k_bthd) { return quantised(k_bthd, bits, scale_of); });
}

SurgeryLosses measure_surgery(const Decoder& model, const std::vector<Batch>& batches, at::ScalarType type,
                              const SurgeryOptions& options, Console& console,
                              const std::function<void()>& before_each) {
  const at::NoGradGuard no_gradients;
  const std::int64_t d = model.config.d_k;
  const std::vector<Operation> operations = operations_of(options, d);
  KeyEdits edits(model, batches.front().tokens_bt, options);
  SurgeryLosses result;
  result.unmodified = validation_loss(model, batches, type);
  result.uniform = validation_loss(model, batches, type, edits.zero_keys());
  Progress progress(console, "surgery", "operations", operations.size());
  Numbers losses;
  for (const Operation& operation : operations) {
    before_each();
    const EditKeys edit = edits.edit(operation);
    losses.push_back(edit ? validation_loss(model, batches, type, edit) : result.unmodified);
    progress.step(fmt::format("loss {:.3f}", losses.back()));
  }
  result.rows = table_of(operations, losses, result.unmodified, options, d);
  return result;
}

}  // namespace headscope
