#include "model/load.h"

#include "core/error.h"
#include "core/regular_file.h"
#include "model/checkpoint_files.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

struct TypePair {
  TensorType file;
  at::ScalarType memory;
};
constexpr std::array<TypePair, 13> types = {{{TensorType::f64, at::kDouble},
                                             {TensorType::f32, at::kFloat},
                                             {TensorType::f16, at::kHalf},
                                             {TensorType::bf16, at::kBFloat16},
                                             {TensorType::i64, at::kLong},
                                             {TensorType::i32, at::kInt},
                                             {TensorType::i16, at::kShort},
                                             {TensorType::i8, at::kChar},
                                             {TensorType::u64, at::kUInt64},
                                             {TensorType::u32, at::kUInt32},
                                             {TensorType::u16, at::kUInt16},
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

// Folders inside that hold checkpoints: the conditions of a study, or those of its seeds. Sorted by name.
std::vector<std::string> runs_inside(const fs::path& place, int depth) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place, ignored))
    if (entry.is_directory(ignored) && !entry.path().filename().string().starts_with('.'))
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> runs;
  for (const fs::path& folder : folders) {
    if (!complete_checkpoints(folder / checkpoints_name).empty()) runs.push_back(folder.string());
    if (depth > 1)
      for (std::string& run : runs_inside(folder, depth - 1)) runs.push_back(std::move(run));
  }
  return runs;
}

// The folder of a checkpoint that is meant by it or by the run that holds it.
fs::path checkpoint_at(const fs::path& place) {
  std::error_code ignored;
  if (fs::exists(place / state_name, ignored)) return place;
  const std::vector<fs::path> complete = complete_checkpoints(place / checkpoints_name);
  if (!complete.empty()) return complete.back();
  const std::vector<std::string> runs = runs_inside(place, /*depth=*/2);
  if (runs.empty())
    fail_input("{}: is no checkpoint (it has no {}) and holds none; give RUN/checkpoints/step-000120 or RUN",
               place.string(), state_name);
  constexpr std::size_t most_named = 9;  // the conditions of three seeds
  fail_input("{}: holds several models; give one of them: {}{}", place.string(),
             fmt::join(std::span(runs).first(std::min(most_named, runs.size())), ", "),
             runs.size() > most_named ? ", …" : "");
}

// The setup in the configuration of a run, which may hold more.
Setup setup_of(const CheckpointReader& reader) {
  Setup setup;
  const std::string origin = reader.file().string();
  std::vector<std::string> known = field_names(setup);
  std::erase(known, "threads");  // of the machine that trained it
  bool says_qk_norm = false;
  for (const ConfigEntry& entry : in_current_words(parse_yaml(yaml_of(reader.object("config")), origin))) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) apply(setup, entry);
    says_qk_norm |= entry.key == "model.qk_norm";
  }
  if (!says_qk_norm) fail_input("{}: says nothing of model.qk_norm; expected true or false", origin);
  validate(setup);
  return setup;
}

// A configuration must not make us allocate far more than its weights can fill. Smaller differences show tensor by
// tensor, with a name.
void check_model_size(const fs::path& file, const DecoderConfig& model) {
  constexpr std::int64_t far_more = 16;
  const auto there = static_cast<std::int64_t>(open_regular_file(file).size);
  const std::int64_t needed = 4 * count_parameters(model).total;
  if (needed / far_more > there)
    fail_damaged(file, fmt::format("has {} bytes; the model in {} has {}", there, state_name, needed));
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

LoadedModel load_model(const fs::path& place, at::Device device) {
  LoadedModel loaded;
  loaded.checkpoint = checkpoint_at(place);
  const CheckpointReader reader(loaded.checkpoint);
  const fs::path weights = loaded.checkpoint / model_name;
  loaded.setup = setup_of(reader);
  loaded.step = reader.count("step", loaded.setup.train.steps());
  loaded.tokens = loaded.step * loaded.setup.train.tokens_per_step();
  check_model_size(weights, loaded.setup.model);
  loaded.model = empty_decoder(loaded.setup.model, device);
  load_weights(reader.tensors(model_name), loaded.model, weights.string());
  return loaded;
}

std::string title_of(const LoadedModel& saved) {
  const fs::path run = run_of_checkpoint(saved.checkpoint);
  const std::string& preset = saved.setup.preset;
  return fmt::format("{}, step {}", run.empty() ? preset : run_title(run, preset), saved.step);
}

}  // namespace headscope
