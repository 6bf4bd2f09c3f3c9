#include "model/training_pass.h"

#include "model/rope.h"
#include "ops/embedding.h"
#include "ops/feed_forward_products.h"
#include "ops/linear.h"
#include "ops/linear_cross_entropy.h"
#include "ops/rms_norm.h"

namespace headscope {

bool TrainingPass::supports(const DecoderConfig& config) {
  return is_of_the_source_study(config);
}

TrainingPass::TrainingPass(const Decoder& model, const Options& options) : model_(model), options_(options) {
  const at::NoGradGuard no_gradients;
  const auto in_type = [&](const at::Tensor& weight) { return weight.detach().to(options.type); };
  embedding_ = in_type(model.embedding);
  for (const DecoderLayer& layer : model.layers)
    matrices_.push_back({in_type(layer.qkv.weight), in_type(layer.output.weight), in_type(layer.up.weight),
                         in_type(layer.down.weight)});
}

NamedTensors TrainingPass::copies() const {
  if (model_.embedding.scalar_type() == options_.type) return {};
  NamedTensors copies = {{"embedding.weight", embedding_}};
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const std::string prefix = "layers." + std::to_string(i) + ".";
    copies.emplace_back(prefix + "attention.qkv.weight", matrices_[i].qkv);
    copies.emplace_back(prefix + "attention.output.weight", matrices_[i].output);
    copies.emplace_back(prefix + "feed_forward.up.weight", matrices_[i].up);
    copies.emplace_back(prefix + "feed_forward.down.weight", matrices_[i].down);
  }
  return copies;
}

void TrainingPass::run(const at::Tensor& tokens_bt, const at::Tensor& targets_bt, const Part& part, at::Tensor& loss,
                       const Observe& observe, const LayerDone& layer_done) {
  const at::NoGradGuard no_gradients;
  const DecoderConfig& c = model_.config;
  const double eps = c.norm.eps, scale = c.embedding_factor();
  b_ = tokens_bt.size(0);
  t_ = tokens_bt.size(1);
  adds_ = !part.first;
  if (!table_.defined() || table_.size(0) < t_) {
    const at::ScalarType wide = options_.type == at::kDouble ? at::kDouble : at::kFloat;
    table_ = rotary_table(t_, rope_frequencies(c, c.rope, t_), 1, wide).to(model_.embedding.device());
  }
  const at::Tensor tokens_n = tokens_bt.flatten();
  gain_sums_.clear();  // of a run that was thrown out of

  Stream stream{at::embedding(embedding_, tokens_n) * scale, {}};
  done("embedding");
  std::vector<Layer> layers;
  for (std::int64_t index = 0; index < c.layers; ++index) {
    Stream behind;
    Layer layer = forward(index, stream, behind, observe);
    if (options_.recompute)
      layers.emplace_back().x_nm = layer.x_nm;
    else
      layers.push_back(std::move(layer));
    stream = behind;
  }
  const NormedSum last = rms_norm_forward(stream.x_nm, stream.delta_nm, model_.final_norm.gain, eps);
  done("norms");
  stream = {};

  at::Tensor d_embedding = model_.embedding.grad();
  const at::Tensor d_last =
      loss_and_gradients(last.y, embedding_, targets_bt.flatten(), part.share, loss, d_embedding, adds_);
  done("loss");
  NormGradients through = rms_norm_backward(last.sum, model_.final_norm.gain, last.inverse, d_last, {});
  add_later(model_.final_norm.gain, through.gain_parts);
  at::Tensor d_nm = through.dx;
  done("norms");
  for (std::int64_t index = c.layers - 1; index >= 0; --index) {
    Layer layer = std::move(layers.back());
    layers.pop_back();
    Stream unused;
    if (options_.recompute) layer = forward(index, {layer.x_nm, {}}, unused, {});
    backward(index, layer, d_nm);
    if (layer_done) layer_done(index);
  }
  add_embedding_gradient(d_embedding, tokens_n, d_nm, scale);
  done("embedding");
  add_partial_sums(gain_sums_, adds_);
  done("norms");
  gain_sums_.clear();
}

TrainingPass::Layer TrainingPass::forward(std::int64_t index, const Stream& stream, Stream& behind,
                                          const Observe& observe) const {
  const DecoderConfig& c = model_.config;
  const DecoderLayer& weights = model_.layers[static_cast<std::size_t>(index)];
  const Matrices& matrices = matrices_[static_cast<std::size_t>(index)];
  Layer layer;

  NormedSum normed = rms_norm_forward(stream.x_nm, stream.delta_nm, weights.attention_norm.gain, c.norm.eps);
  layer.x_nm = normed.sum;
  layer.h_nm = normed.y;
  layer.inverse = normed.inverse;
  done("norms");
  layer.qkv_bthd = at::mm(layer.h_nm, matrices.qkv.t()).view({b_, t_, -1, c.d_k});
  done("products");
  layer.heads = rotate_heads(layer.qkv_bthd, rotation(index), /*with_plain=*/static_cast<bool>(observe));
  done("heads");
  layer.attended = attention_forward(layer.heads.q_bthd, layer.heads.k_bthd, layer.heads.v_bthd, c.score_factor(),
                                     options_.deterministic);
  done("attention");
  if (observe) {
    const auto plain = layer.heads.plain_bthd.split_with_sizes({c.heads, c.kv_heads}, 2);
    observe(index, {plain[0],
                    plain[1],
                    layer.qkv_bthd.narrow(2, c.heads + c.kv_heads, c.kv_heads),
                    layer.heads.q_bthd,
                    layer.heads.k_bthd.slice(2, 0, std::nullopt, layer.heads.k_bthd.size(2) / c.kv_heads),
                    {c.score_factor()},
                    layer.attended.log_sum_bht});
    layer.heads.plain_bthd.reset();
    done("measuring");
  }
  const at::Tensor attention_nm = at::mm(layer.attended.mixed_bthd.reshape({b_ * t_, -1}), matrices.output.t());
  done("products");

  normed = rms_norm_forward(layer.x_nm, attention_nm, weights.feed_forward_norm.gain, c.norm.eps);
  layer.middle_nm = normed.sum;
  layer.middle_h_nm = normed.y;
  layer.middle_inverse = normed.inverse;
  done("norms");
  layer.inner_nf = squared_relu_product(layer.middle_h_nm, matrices.up);
  behind = {layer.middle_nm, at::mm(layer.inner_nf, matrices.down.t())};
  done("products");
  return layer;
}

void TrainingPass::backward(std::int64_t index, const Layer& layer, at::Tensor& d_nm) {
  const DecoderConfig& c = model_.config;
  const DecoderLayer& weights = model_.layers[static_cast<std::size_t>(index)];
  const Matrices& matrices = matrices_[static_cast<std::size_t>(index)];
  const auto add_gradient = [&](const Linear& matrix, const at::Tensor& dy, const at::Tensor& x) {
    at::Tensor gradient = matrix.weight.grad();
    add_weight_gradient(gradient, dy, x, 1, adds_);
  };

  add_gradient(weights.down, d_nm, layer.inner_nf);
  at::Tensor d_inner_nf = squared_relu_product_backward(d_nm, matrices.down, layer.inner_nf);
  add_gradient(weights.up, d_inner_nf, layer.middle_h_nm);
  const at::Tensor d_middle_h_nm = at::mm(d_inner_nf, matrices.up);
  done("products");
  NormGradients through =
      rms_norm_backward(layer.middle_nm, weights.feed_forward_norm.gain, layer.middle_inverse, d_middle_h_nm, d_nm);
  add_later(weights.feed_forward_norm.gain, through.gain_parts);
  d_nm = through.dx;
  d_inner_nf.reset();
  done("norms");

  const at::Tensor mixed_nd = layer.attended.mixed_bthd.reshape({b_ * t_, -1});
  add_gradient(weights.output, d_nm, mixed_nd);
  const at::Tensor d_mixed_bthd = at::mm(d_nm, matrices.output).view({b_, t_, c.heads, c.d_k});
  done("products");
  const AttentionGradients d = attention_backward(layer.heads.q_bthd, layer.heads.k_bthd, layer.heads.v_bthd,
                                                  layer.attended, d_mixed_bthd, c.score_factor());
  done("attention");
  const HeadRotationGradients rotated =
      rotate_heads_backward(layer.qkv_bthd, rotation(index), d.dq_bthd, d.dk_bthd, d.dv_bthd);
  done("heads");
  if (weights.q_gain.defined() && weights.q_gain.requires_grad()) {
    // The gradient of one factor is the sum of those of the dimensions.
    const auto of_gain = [&](const at::Tensor& parts) {
      return c.qk_gain == QkGainShape::scalar ? parts.sum(1, /*keepdim=*/true) : parts;
    };
    add_later(weights.q_gain, of_gain(rotated.q_gain_parts));
    add_later(weights.k_gain, of_gain(rotated.k_gain_parts));
  }
  const at::Tensor d_qkv_nd = rotated.d_qkv_bthd.view({b_ * t_, -1});
  add_gradient(weights.qkv, d_qkv_nd, layer.h_nm);
  const at::Tensor d_h_nm = at::mm(d_qkv_nd, matrices.qkv);
  done("products");
  through = rms_norm_backward(layer.x_nm, weights.attention_norm.gain, layer.inverse, d_h_nm, d_nm);
  add_later(weights.attention_norm.gain, through.gain_parts);
  d_nm = through.dx;
  done("norms");
}

HeadRotation TrainingPass::rotation(std::int64_t index) const {
  const DecoderConfig& c = model_.config;
  const DecoderLayer& layer = model_.layers[static_cast<std::size_t>(index)];
  const bool repeated = c.heads > c.kv_heads &&
                        wants_repeated_keys(c.d_k, model_.embedding.device(), options_.type, options_.deterministic);
  const auto of_dimensions = [&](const at::Tensor& gain) {  // as the kernel takes it
    return gain.defined() ? effective_qk_gain(model_, gain).contiguous() : gain;
  };
  return {c.heads, c.kv_heads, of_dimensions(layer.q_gain), of_dimensions(layer.k_gain), c.norm.eps, table_, repeated};
}

}  // namespace headscope
