#include "experiments/surgery/key_edits.h"

#include "core/random.h"

namespace headscope {
namespace {

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

}  // namespace

Directions gain_directions(const Decoder& model, RemovalOrder order) {
  Directions directions;
  for (const DecoderLayer& layer : model.layers) {
    const at::Tensor axes_d = at::argsort(layer.k_gain.detach().abs(), /*stable=*/true, /*dim=*/0,
                                          /*descending=*/order == RemovalOrder::largest);
    directions.push_back({axes_d.expand({model.config.kv_heads, -1}), {}});
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

}  // namespace headscope
