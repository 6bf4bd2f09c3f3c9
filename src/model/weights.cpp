#include "model/weights.h"

#include "core/error.h"

namespace headscope {
namespace {

struct TypePair {
  TensorType file;
  at::ScalarType memory;
};
constexpr std::array<TypePair, 10> types = {{{TensorType::f64, at::kDouble},
                                             {TensorType::f32, at::kFloat},
                                             {TensorType::f16, at::kHalf},
                                             {TensorType::bf16, at::kBFloat16},
                                             {TensorType::i64, at::kLong},
                                             {TensorType::i32, at::kInt},
                                             {TensorType::i16, at::kShort},
                                             {TensorType::i8, at::kChar},
                                             {TensorType::u8, at::kByte},
                                             {TensorType::boolean, at::kBool}}};

TensorType type_in_file(at::ScalarType type) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const TypePair& pair) { return pair.memory == type; });
  HEADSCOPE_CHECK(found != types.end(), "type {}", at::toString(type));
  return found->file;
}

at::ScalarType type_in_memory(TensorType type) {
  return std::find_if(types.begin(), types.end(), [&](const TypePair& pair) { return pair.file == type; })->memory;
}

}  // namespace

std::string save_tensors(const std::filesystem::path& file, const NamedTensors& tensors) {
  std::vector<at::Tensor> on_host;
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor& host = on_host.emplace_back(tensor.detach().cpu().contiguous());
    const auto* first = static_cast<const std::byte*>(host.const_data_ptr());
    views.push_back({name, type_in_file(host.scalar_type()), host.sizes().vec(), {first, host.nbytes()}});
  }
  return write_safetensors(file, views);
}

void load_tensor(const TensorView& view, const at::Tensor& target, const std::string& origin) {
  if (target.sizes() != at::IntArrayRef(view.shape))
    fail_input("{}: {} has shape [{}], the model's has [{}]", origin, view.name, fmt::join(view.shape, ", "),
               fmt::join(target.sizes().vec(), ", "));
  const at::NoGradGuard no_gradients;
  // A copy: values in a file need not be aligned as their type asks for.
  const at::Tensor host = at::empty(view.shape, type_in_memory(view.type));
  std::memcpy(host.mutable_data_ptr(), view.bytes.data(), view.bytes.size());
  target.copy_(host);
}

void load_weights(const Safetensors& weights, const Decoder& model, const std::string& origin) {
  for_each_parameter(model, [&](const std::string& name, ParameterKind, const at::Tensor& value) {
    load_tensor(weights.get(name), value, origin);
  });
}

}  // namespace headscope
