#include "optim/device_step.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "optim/polar_express.h"

#ifdef HEADSCOPE_CUDA
#include "ops/cuda/inputs.h"
#include "optim/cuda/adamw.h"
#include "optim/cuda/muon.h"
#include "optim/cuda/update.h"
#endif

namespace headscope {
namespace {

// Muon's factor on the learning rate.
double rate_of_shape(std::int64_t rows, std::int64_t columns) {
  return std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(columns)));
}

void give_gradient(at::Tensor parameter, const at::Tensor& memory, std::int64_t begin) {
  HEADSCOPE_CHECK(parameter.is_contiguous() && parameter.scalar_type() == memory.scalar_type() &&
                      parameter.device() == memory.device(),
                  "parameters of one type on one device");
  parameter.mutable_grad() = memory.narrow(0, begin, parameter.numel()).view(parameter.sizes());
}

// Visits the parts of a group: visit(part, where it begins in the memory of the batch).
template <class Visit>
void for_each_part(const MatrixGroup& group, Visit&& visit) {
  std::int64_t begin = group.begin;
  for (const LayerMatrix& matrix : group.matrices) {
    for (const at::Tensor& part : matrix.parts) {
      visit(part, begin);
      begin += part.numel();
    }
  }
}

at::Tensor short_side_first(const at::Tensor& matrix) {
  return matrix.size(0) > matrix.size(1) ? matrix.t() : matrix;
}

}  // namespace

DeviceStep::DeviceStep(const std::vector<LayerMatrix>& matrices, const NamedTensors& momentum, AdamW adamw,
                       const OptimizerOptions& options)
    : options_(options), adamw_(std::move(adamw)) {
  const at::NoGradGuard no_gradients;
  if (matrices.empty() && adamw_.parameters().empty())
    fail_input("this rank has nothing to update: the model is too small for so many; start fewer ranks");
  std::int64_t elements = 0;
  for (const auto& [name, value] : adamw_.parameters()) elements += aligned(value.numel());
  for (MatrixBatch& layout : matrix_batches(matrices)) {
    elements += layout.elements;
    batches_.emplace_back().layout = std::move(layout);
  }
  const at::Tensor& some = matrices.empty() ? adamw_.parameters().front().second : matrices.front().parts.front();
  gradients_ = at::zeros({elements}, some.options().requires_grad(false));
  HEADSCOPE_CHECK(!gradients_.is_cuda() || gradients_.scalar_type() == at::kFloat, "float32 on a GPU");

  std::int64_t begin = 0;
  for (const auto& [name, value] : adamw_.parameters()) {
    give_gradient(value, gradients_, begin);
    begin += aligned(value.numel());
  }
  for (Batch& batch : batches_) {
    batch.gradient = gradients_.narrow(0, begin, batch.layout.elements);
    batch.momentum = at::zeros_like(batch.gradient);
    begin += batch.layout.elements;
    for (const MatrixGroup& group : batch.layout.groups)
      for_each_part(group, [&](const at::Tensor& part, std::int64_t at) { give_gradient(part, batch.gradient, at); });
  }
  const NamedTensors own = this->momentum();
  HEADSCOPE_CHECK(own.size() == momentum.size(), "{} matrices, momentum of {}", own.size(), momentum.size());
  for (const auto& [name, value] : momentum) {
    const auto target = std::ranges::find(own, name, &NamedTensors::value_type::first);
    HEADSCOPE_CHECK(target != own.end(), "{} is of no matrix", name);
    target->second.copy_(value);
  }
  make_tables();
}

void DeviceStep::keep_copies(std::vector<std::pair<at::Tensor, at::Tensor>> copies) {
  const at::NoGradGuard no_gradients;
  copies_ = std::move(copies);
  for (const auto& [parameter, copy] : copies_) {
    HEADSCOPE_CHECK(copy.scalar_type() == at::kBFloat16 && copy.is_contiguous() && copy.sizes() == parameter.sizes() &&
                        copy.device() == parameter.device(),
                    "a copy is the parameter in bfloat16");
  }
  copy_again();
  make_tables();
}

void DeviceStep::copy_again() const {
  const at::NoGradGuard no_gradients;
  for (const auto& [parameter, copy] : copies_) copy.copy_(parameter);
}

void DeviceStep::sum_squares() {
  if (gradients_.is_cuda())
    sum_squares_by_kernel();
  else
    squares_ = at::linalg_vector_norm(gradients_, 2, {}, /*keepdim=*/false, at::kDouble).square();
}

void DeviceStep::run(const DeviceUpdate& update, double limit) {
  const at::NoGradGuard no_gradients;
  for (const at::Tensor* value : {&update.lr_factor, &update.loss, &update.grad_norm, &update.sound})
    HEADSCOPE_CHECK(value->numel() == 1 && value->device() == gradients_.device() &&
                        value->scalar_type() == (value == &update.sound ? at::kInt : at::kFloat),
                    "one float32 (sound: int32) where the gradients are");
  if (gradients_.is_cuda())
    run_kernels(update, limit);
  else
    run_composed(update, limit);
}

void DeviceStep::run_composed(const DeviceUpdate& update, double limit) {
  const double norm = squares_.sum().sqrt().item<double>();
  update.grad_norm.fill_(norm);
  if (!std::isfinite(norm) || !std::isfinite(update.loss.item<double>())) update.sound.zero_();
  if (update.sound.item<int>() == 0) return;
  if (norm > limit) gradients_.mul_(limit / norm);
  const auto lr_factor = update.lr_factor.item<double>();
  for (const Batch& batch : batches_) muon_composed(batch, options_.muon_lr * lr_factor);
  adamw_.step(options_.adamw_lr * lr_factor);
  copy_again();
}

void DeviceStep::muon_composed(const Batch& batch, double lr) const {
  batch.momentum.lerp_(batch.gradient, 1 - options_.muon.momentum);
  const at::Tensor x = batch.gradient.lerp(batch.momentum, options_.muon.momentum);
  std::vector<at::Tensor> scaled;
  for (const at::Tensor& group : batch.layout.views(x)) scaled.push_back(with_norm_below_one(group) * raised);
  const std::vector<at::Tensor> result = polar_express(scaled, batch.layout.views(at::empty_like(x)));
  for (std::size_t i = 0; i < result.size(); ++i) {
    const MatrixGroup& group = batch.layout.groups[i];
    const at::Tensor flat = result[i].flatten();
    for_each_part(group, [&](at::Tensor part, std::int64_t at) {
      part.add_(flat.narrow(0, at - group.begin, part.numel()).view(part.sizes()),
                -lr * rate_of_shape(group.rows, group.columns));
    });
  }
}

NamedTensors DeviceStep::momentum() const {
  NamedTensors state;
  for (const Batch& batch : batches_) {
    for (const MatrixGroup& group : batch.layout.groups) {
      const at::Tensor momentum = group.view(batch.momentum);
      for (std::int64_t i = 0; i < group.count(); ++i)
        state.emplace_back("muon.momentum." + group.matrices[static_cast<std::size_t>(i)].name,
                           short_side_first(momentum[i]));
    }
  }
  return state;
}

// Of a parameter, or of rows of it.
void* DeviceStep::copy_of(const at::Tensor& parameter) const {
  const auto* begin = static_cast<const char*>(parameter.const_data_ptr());
  for (const auto& [copied, copy] : copies_) {
    const std::ptrdiff_t before = begin - static_cast<const char*>(copied.const_data_ptr());
    if (before >= 0 && before < static_cast<std::ptrdiff_t>(copied.nbytes()))
      return static_cast<at::BFloat16*>(copy.mutable_data_ptr()) +
             before / static_cast<std::ptrdiff_t>(copied.itemsize());
  }
  return nullptr;
}

#ifdef HEADSCOPE_CUDA
namespace {

// Tables keep their place when they are written again: a recorded CUDA graph reads them there.
template <class Row>
void put(at::Tensor& table, const std::vector<Row>& rows, at::Device device) {
  const auto bytes = static_cast<std::int64_t>(rows.size() * sizeof(Row));
  const at::Tensor host = at::empty({bytes}, at::kByte);
  std::memcpy(host.mutable_data_ptr(), rows.data(), static_cast<std::size_t>(bytes));
  if (table.defined() && table.numel() == bytes)
    table.copy_(host);
  else
    table = host.to(device);
}

template <class Row>
const Row* rows_in(const at::Tensor& table) {
  return static_cast<const Row*>(table.const_data_ptr());
}

template <class Row>
std::int64_t row_count(const at::Tensor& table) {
  return table.numel() / static_cast<std::int64_t>(sizeof(Row));
}

// Cuts `elements` into chunks: visit(first element, number of elements).
template <class Visit>
void for_each_chunk(std::int64_t elements, std::int64_t most, Visit&& visit) {
  for (std::int64_t first = 0; first < elements; first += most)
    visit(first, static_cast<int>(std::min(most, elements - first)));
}

}  // namespace

void DeviceStep::make_tables() {
  if (!gradients_.is_cuda()) return;
  const at::Device device = gradients_.device();
  const c10::cuda::CUDAGuard guard(device);
  const auto bytes = [&](std::size_t size) {
    return at::zeros({static_cast<std::int64_t>(size)}, at::TensorOptions(device).dtype(at::kByte));
  };
  const auto doubles = at::TensorOptions(device).dtype(at::kDouble);
  if (!control_.defined()) {
    squares_ = at::zeros({cuda::norm_partials}, doubles);
    control_ = bytes(sizeof(cuda::Control));
    own_steps_ = bytes(sizeof(cuda::ParameterStep) * adamw_.parameters().size());
  }
  put(decays_, adamw_.decays(), device);
  std::vector<cuda::AdamWChunk> adamw_chunks;
  for (std::size_t i = 0; i < adamw_.parameters().size(); ++i) {
    const at::Tensor& value = adamw_.parameters()[i].second;
    auto* copy = static_cast<at::BFloat16*>(copy_of(value));
    for_each_chunk(value.numel(), cuda::adamw_chunk, [&](std::int64_t first, int count) {
      adamw_chunks.push_back({value.mutable_data_ptr<float>() + first, value.grad().const_data_ptr<float>() + first,
                              adamw_.first()[i].mutable_data_ptr<float>() + first,
                              adamw_.second()[i].mutable_data_ptr<float>() + first,
                              copy != nullptr ? copy + first : nullptr, count, static_cast<int>(i)});
    });
  }
  put(adamw_chunks_, adamw_chunks, device);

  for (Batch& batch : batches_) {
    std::vector<cuda::MomentumChunk> momentum_chunks;
    std::vector<std::int32_t> first_chunk = {0};
    std::vector<cuda::WeightChunk> weight_chunks;
    int index = 0;
    for (const MatrixGroup& group : batch.layout.groups) {
      for (std::int64_t matrix = 0; matrix < group.count(); ++matrix) {
        const std::int64_t size = group.rows * group.columns, begin = group.begin + matrix * size;
        for_each_chunk(size, cuda::muon_chunk, [&](std::int64_t first, int count) {
          momentum_chunks.push_back({begin + first, count, index});
        });
        ++index;
        first_chunk.push_back(static_cast<std::int32_t>(momentum_chunks.size()));
      }
      const auto rate = static_cast<float>(options_.muon_lr * rate_of_shape(group.rows, group.columns));
      for_each_part(group, [&](const at::Tensor& part, std::int64_t begin) {
        auto* copy = static_cast<at::BFloat16*>(copy_of(part));
        for_each_chunk(part.numel(), cuda::muon_chunk, [&](std::int64_t first, int count) {
          weight_chunks.push_back({part.mutable_data_ptr<float>() + first, copy != nullptr ? copy + first : nullptr,
                                   begin + first, count, rate});
        });
      });
    }
    put(batch.momentum_chunks, momentum_chunks, device);
    put(batch.first_chunk, first_chunk, device);
    put(batch.weight_chunks, weight_chunks, device);
    if (batch.scale.defined()) continue;
    batch.squares = at::zeros({static_cast<std::int64_t>(momentum_chunks.size())}, doubles);
    batch.scale = at::zeros({batch.layout.matrices()}, doubles.dtype(at::kFloat));
  }
}

void DeviceStep::sum_squares_by_kernel() {
  const c10::cuda::CUDAGuard guard(gradients_.device());
  cuda::sum_squares(gradients_.const_data_ptr<float>(), gradients_.numel(), squares_.mutable_data_ptr<double>(),
                    c10::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void DeviceStep::run_kernels(const DeviceUpdate& update, double limit) {
  const c10::cuda::CUDAGuard guard(gradients_.device());
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const AdamWOptions& adamw = adamw_.options();
  auto* control = static_cast<cuda::Control*>(control_.mutable_data_ptr());
  auto* own_steps = static_cast<cuda::ParameterStep*>(own_steps_.mutable_data_ptr());
  cuda::start_update({.lr_factor = update.lr_factor.const_data_ptr<float>(),
                      .loss = update.loss.const_data_ptr<float>(),
                      .grad_norm = update.grad_norm.mutable_data_ptr<float>(),
                      .sound = update.sound.mutable_data_ptr<std::int32_t>(),
                      .limit = limit,
                      .steps = adamw_.parameters().empty() ? nullptr : adamw_.steps().mutable_data_ptr<float>(),
                      .decays = rows_in<Decay>(decays_),
                      .own_steps = own_steps,
                      .parameters = static_cast<int>(adamw_.parameters().size()),
                      .lr = options_.adamw_lr,
                      .beta1 = adamw.beta1,
                      .beta2 = adamw.beta2},
                     squares_.const_data_ptr<double>(), control, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  for (const Batch& batch : batches_) muon_kernels(batch);
  const cuda::AdamWFactors factors = {static_cast<float>(1 - adamw.beta1), static_cast<float>(adamw.beta2),
                                      static_cast<float>(1 - adamw.beta2), static_cast<float>(adamw.eps)};
  if (adamw_.parameters().empty()) return;
  cuda::adamw(rows_in<cuda::AdamWChunk>(adamw_chunks_), row_count<cuda::AdamWChunk>(adamw_chunks_), factors, own_steps,
              control, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void DeviceStep::muon_kernels(const Batch& batch) const {
  const auto stream = c10::cuda::getCurrentCUDAStream();
  const auto* control = rows_in<cuda::Control>(control_);
  const auto* chunks = rows_in<cuda::MomentumChunk>(batch.momentum_chunks);
  const std::int64_t count = row_count<cuda::MomentumChunk>(batch.momentum_chunks);
  const at::Tensor x = at::empty(batch.gradient.sizes(), batch.gradient.options().dtype(at::kBFloat16));
  cuda::momentum_step(chunks, count, batch.gradient.const_data_ptr<float>(), batch.momentum.mutable_data_ptr<float>(),
                      x.mutable_data_ptr(), batch.squares.mutable_data_ptr<double>(), options_.muon.momentum, control,
                      stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  cuda::norm_scales(batch.squares.const_data_ptr<double>(), rows_in<std::int32_t>(batch.first_chunk),
                    batch.layout.matrices(), norm_margin / raised, norm_eps / raised,
                    batch.scale.mutable_data_ptr<float>(), stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const at::Tensor scaled = at::empty_like(x, at::kHalf);
  cuda::scale_matrices(chunks, count, x.const_data_ptr(), batch.scale.const_data_ptr<float>(),
                       scaled.mutable_data_ptr(), stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  const std::vector<at::Tensor> result =
      polar_express(batch.layout.views(scaled), batch.layout.views(x.view(at::kHalf)));
  // Groups lie in the result as they lie in the gradient: the first one begins where the memory does.
  cuda::weight_step(rows_in<cuda::WeightChunk>(batch.weight_chunks), row_count<cuda::WeightChunk>(batch.weight_chunks),
                    result.front().const_data_ptr(), control, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}
#else
void DeviceStep::make_tables() {}
void DeviceStep::sum_squares_by_kernel() {}
void DeviceStep::run_kernels(const DeviceUpdate&, double) {
  fail_runtime("this program was built without kernels");
}
void DeviceStep::muon_kernels(const Batch&) const {}
#endif

}  // namespace headscope
