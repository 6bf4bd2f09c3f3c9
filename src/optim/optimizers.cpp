#include "optim/optimizers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace headscope {
namespace {

// AdamW on what the matrices of the layers leave, each with its decay.
AdamW make_adamw(const Shares& shares, const OptimizerOptions& options) {
  NamedTensors parameters;
  std::vector<Decay> decays;
  for (const Share& share : shares.others()) {
    parameters.emplace_back(share.name, share.own);
    decays.push_back(decay_of(options, share.kind));
  }
  return {std::move(parameters), options.adamw, std::move(decays)};
}

NamedTensors sorted(NamedTensors state) {
  std::ranges::sort(state, {}, &NamedTensors::value_type::first);
  return state;
}

// One behind the other, in the order of names, in memory of the host. `like`: their type.
at::Tensor in_one(const NamedTensors& state, const at::Tensor& like) {
  std::vector<at::Tensor> flat = {at::empty({0}, at::TensorOptions(like.scalar_type()))};  // a rank may own nothing
  for (const auto& [name, value] : sorted(state)) flat.push_back(value.flatten().cpu());
  return at::cat(flat);
}

// The parameters' names, shapes and kinds, in memory of the host that nothing is written to.
Decoder without_values(Decoder model) {
  for_each_parameter(model, [](const std::string&, ParameterKind, at::Tensor& value) {
    const bool is_trained = value.requires_grad();
    value = at::empty_like(value.detach(), at::TensorOptions(at::kCPU)).set_requires_grad(is_trained);
  });
  return model;
}

at::Tensor find(const NamedTensors& state, const std::string& name) {
  const auto found = std::ranges::find(state, name, &NamedTensors::value_type::first);
  HEADSCOPE_CHECK(found != state.end(), "{} is not in the state", name);
  return found->second;
}

}  // namespace

Decay decay_of(const OptimizerOptions& options, ParameterKind kind) {
  if (kind == ParameterKind::qk_gain) return {options.decay_of_gains(), options.gain_decay_target};
  return {kind == ParameterKind::embedding ? options.decay_of_embedding() : options.adamw.weight_decay};
}

Optimizers::Optimizers(const Decoder& model, const OptimizerOptions& options, const Sharing& sharing)
    : options_(options),
      shares_(model, sharing),
      muon_(shares_.matrices(), options.muon),
      adamw_(make_adamw(shares_, options)) {
  for_each_parameter(model, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    parameters_.emplace_back(name, value);
  });
}

void Optimizers::step(double lr_factor) {
  HEADSCOPE_CHECK(!device_, "gradients are kept: updates are DeviceUpdates");
  muon_.step(options_.muon_lr * lr_factor);
  adamw_.step(options_.adamw_lr * lr_factor);
}

void Optimizers::keep_gradients() {
  if (device_) return;
  device_.emplace(shares_.matrices(), muon_.state(), adamw_, options_);
  shares_.keep_gradients();
  muon_ = Muon({}, options_.muon);  // gives its memory back
}

void Optimizers::keep_copies(const NamedTensors& copies) {
  HEADSCOPE_CHECK(device_, "keep_gradients comes first");
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  for (const auto& [name, copy] : copies) {
    const auto parameter = std::ranges::find(parameters_, name, &NamedTensors::value_type::first);
    HEADSCOPE_CHECK(parameter != parameters_.end(), "{} is no parameter", name);
    pairs.emplace_back(parameter->second, copy);
  }
  device_->keep_copies(std::move(pairs));
}

void Optimizers::step(const DeviceUpdate& update, double limit) {
  sum_squares();
  step_own(update, limit);
}

const at::Tensor& Optimizers::sum_squares() {
  HEADSCOPE_CHECK(device_, "keep_gradients comes first");
  device_->sum_squares();
  return device_->squares();
}

void Optimizers::step_own(const DeviceUpdate& update, double limit) {
  device_->run(update, limit);
}

void Optimizers::unpack_weights() {
  shares_.unpack_weights();
  device_->copy_again();
}

NamedTensors Optimizers::state() const {
  auto state = device_ ? device_->momentum() : muon_.state();
  for (auto& entry : adamw_.state()) state.push_back(std::move(entry));
  return state;
}

NamedTensors Optimizers::whole_state(const Decoder& model, const Ranks& ranks) const {
  if (!ranks.several()) return state();
  const Decoder names = without_values(model);
  NamedTensors whole;
  if (ranks.first()) whole = Optimizers(names, options_).state();
  ranks.gather(in_one(state(), model.embedding), [&](int rank, const at::Tensor& own) {
    const Optimizers part(names, options_, {rank, ranks.size(), false, shares_.sharing().least_piece});
    std::int64_t begin = 0;
    for (const auto& [name, value] : sorted(part.state())) {
      const at::Tensor target = find(whole, name);
      const Share* rows = part.shares_.rows_behind(name, value);
      (rows != nullptr ? rows->rows_of(target) : target).copy_(own.narrow(0, begin, value.numel()).view_as(value));
      begin += value.numel();
    }
  });
  return whole;
}

void Optimizers::load_state(const std::function<void(const std::string&, const at::Tensor&)>& load) const {
  for (const auto& [name, value] : state()) {
    const Share* rows = shares_.rows_behind(name, value);
    if (rows == nullptr) {
      load(name, value);
      continue;
    }
    const at::Tensor whole = at::empty_like(rows->parameter, value.options());
    load(name, whole);
    value.copy_(rows->rows_of(whole));
  }
}

double learning_rate_factor(const ScheduleOptions& options, std::int64_t step, std::int64_t steps) {
  if (step < options.warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(options.warmup_steps);
  if (options.kind == Schedule::constant) return 1;
  const auto left = static_cast<double>(std::max<std::int64_t>(1, steps - 1 - options.warmup_steps));
  const double done = std::min(1.0, static_cast<double>(step - options.warmup_steps) / left);
  return options.final_share + (1 - options.final_share) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

}  // namespace headscope
