#include "model/load.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/text.h"
#include "data/text_tokenizer.h"
#include "data/token_file.h"
#include "formats/model_files.h"
#include "model/checkpoint_files.h"
#include "model/gguf_model.h"
#include "model/stored_weights.h"

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
  const auto found = std::find_if(types.begin(), types.end(), [&](const TypePair& pair) { return pair.file == type; });
  HEADSCOPE_CHECK(found != types.end(), "type {}", type_name(type));
  return found->memory;
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
  if (!fs::exists(place, ignored)) fail_input("{}: is not there", place.string());
  if (!fs::is_directory(place, ignored))
    fail_input("{}: is no GGUF file; expected one, or the folder of a model, a checkpoint or a run", place.string());
  const std::vector<std::string> runs = runs_inside(place, /*depth=*/2);
  if (runs.empty())
    fail_input(
        "{}: is no checkpoint (it has no {}), holds none, and is no published model (it has no {}); give "
        "RUN/checkpoints/step-000120, RUN, or a model's own folder or GGUF file",
        place.string(), state_name, published_config_name);
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
  for (const ConfigEntry& entry : parse_yaml(yaml_of(in_current_words(reader.object("config"))), origin)) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) apply(setup, entry);
    says_qk_norm |= entry.key == "model.qk_norm";
  }
  if (!says_qk_norm) fail_input("{}: says nothing of model.qk_norm; expected true or false", origin);
  validate(setup);
  return setup;
}

// The place where a tensor of a file is found by its name.
StoredWeights stored_in(const Safetensors& file, const std::string& origin) {
  std::map<std::string_view, const TensorView*> places;
  for (const TensorView& tensor : file.tensors()) places.emplace(tensor.name, &tensor);
  const auto find = [places = std::move(places)](std::string_view name) {
    const auto found = places.find(name);
    return found == places.end() ? nullptr : found->second;
  };
  return {.origin = origin, .find = find, .names = {}};
}
StoredWeights stored_in(const ModelFiles& files) {
  StoredWeights weights{.origin = files.place().string(),
                        .find = [&files](std::string_view name) { return files.find(name); },
                        .names = {}};
  for (const TensorView& tensor : files.tensors()) weights.names.push_back(tensor.name);
  return weights;
}

// The model that the stored tensors are, in memory.
Decoder filled_decoder(const StoredWeights& weights, const StoredModel& stored, at::Device device,
                       at::ScalarType type) {
  Decoder model = empty_decoder(stored.config, device, type);
  if (!device.is_meta()) load_weights(weights, stored, model);
  return model;
}

bool looks_published(const fs::path& place) {
  std::error_code ignored;
  return is_gguf(place) || fs::exists(place / published_config_name, ignored) ||
         fs::is_directory(place / "snapshots", ignored);
}

// The options of a published model and the row of its architecture, of a folder or of a GGUF file.
struct PublishedModel {
  std::string origin;  // of the options
  GgufModel model;
};
PublishedModel describe(const ModelFiles& files) {
  if (files.gguf() != nullptr) return {files.place().string(), describe_gguf(*files.gguf())};
  const fs::path file = files.required_file(published_config_name);
  PublishedModel described{file.string(), {}};
  described.model.options = parse_strict_json(read_file(file), file.string());
  const std::string model_type = ModelOptions(described.model.options, described.origin).text("model_type");
  described.model.architecture = published_architecture(model_type, described.origin);
  return described;
}

LoadedModel load_published(const fs::path& place, at::Device device, at::ScalarType type) {
  const ModelFiles files(place);
  const PublishedModel published = describe(files);
  const Architecture& architecture = published.model.architecture;
  StoredWeights weights = stored_in(files);
  std::erase_if(weights.names, [&](const std::string& name) { return published.model.read_tensors.contains(name); });
  const ModelOptions options(published.model.options, published.origin);
  StoredModel stored = match_weights(weights, architecture, decoder_config(architecture, options));
  LoadedModel loaded;
  loaded.checkpoint = files.place();
  loaded.model = filled_decoder(weights, stored, device, type);
  loaded.architecture = architecture.model_type;
  loaded.setup.preset = architecture.model_type;
  loaded.setup.model = stored.config;
  loaded.setup.data.validation_sample = false;  // it would read far more than is measured
  loaded.warnings = std::move(stored.warnings);
  if (!files.unlisted().empty())
    loaded.warnings.push_back(fmt::format("{}: {} tensors that the index does not list are not used, {} for example",
                                          files.place().string(), files.unlisted().size(), files.unlisted().front()));
  if (const auto revision = revision_of(loaded.checkpoint)) {
    loaded.step = revision->step;
    loaded.tokens = revision->tokens;
  }
  return loaded;
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

void load_weights(const Safetensors& file, const Decoder& model, const std::string& origin) {
  const StoredWeights weights = stored_in(file, origin);
  load_weights(weights, match_weights(weights, own_architecture(), model.config), model);
}

LoadedModel load_model(const fs::path& place, at::Device device, at::ScalarType type) {
  if (looks_published(place)) return load_published(place, device, type);
  LoadedModel loaded;
  loaded.checkpoint = checkpoint_at(place);
  const CheckpointReader reader(loaded.checkpoint);
  const fs::path weights = loaded.checkpoint / model_name;
  loaded.setup = setup_of(reader);
  loaded.step = reader.count("step", loaded.setup.train.steps());
  loaded.tokens = loaded.step * loaded.setup.train.tokens_per_step();
  const Safetensors file = reader.tensors(model_name);
  const StoredWeights stored = stored_in(file, weights.string());
  loaded.model = filled_decoder(stored, match_weights(stored, own_architecture(), loaded.setup.model), device, type);
  return loaded;
}

std::optional<RevisionName> trained_for(const fs::path& place) {
  if (looks_published(place)) return revision_of(is_gguf(place) ? place : find_model_folder(place));
  const CheckpointReader reader(checkpoint_at(place));
  const TrainOptions train = setup_of(reader).train;
  const std::int64_t step = reader.count("step", train.steps());
  return RevisionName{.step = step, .tokens = step * train.tokens_per_step()};
}

bool has_tokenizer(const LoadedModel& saved) {
  if (saved.architecture.empty()) return false;
  std::error_code ignored;
  if (is_gguf(saved.checkpoint)) return Gguf(saved.checkpoint).metadata().contains("tokenizer.ggml.model");
  return fs::exists(saved.checkpoint / "tokenizer.json", ignored);
}

void hold_out_all(LoadedModel& saved, bool tokenizer_given) {
  if (saved.architecture.empty()) return;
  DataOptions& data = saved.setup.data;
  if (data.path.empty())
    fail_input("{}: a published model has no data of its own; give text with --data", saved.checkpoint.string());
  const std::string own = absolute_folder(saved.checkpoint).string();
  std::error_code ignored;
  if (fs::path(data.path).extension() != ".bin" || fs::is_directory(data.path, ignored)) {
    if (!tokenizer_given) data.tokenizer = own;
  } else if (!tokenizer_given && has_tokenizer(saved)) {  // tokens need none, but may be another's
    const std::string theirs = open_token_file(data.path).info.tokenizer, ours = TextTokenizer(own).name();
    if (theirs != ours)
      saved.warnings.push_back(fmt::format(
          "{}: has tokens of '{}'; the model's tokenizer is '{}', whose ids may differ", data.path, theirs, ours));
  }
  if (data.validation.empty()) data.validation = data.path;
  const std::int64_t range = saved.model.config.longest;
  std::int64_t& length = saved.setup.train.seq_len;
  if (range == 0 || length <= range) return;
  saved.warnings.push_back(fmt::format("{}: the model's range is {} tokens; sequences have {} instead of {}",
                                       saved.checkpoint.string(), with_separators(range), with_separators(range),
                                       with_separators(length)));
  length = range;
}

std::string title_of(const LoadedModel& saved) {
  if (!saved.architecture.empty()) return fmt::format("{} ({})", published_name(saved.checkpoint), saved.architecture);
  return fmt::format("{}, step {}", title_of_course(saved), saved.step);
}

std::string title_of_course(const LoadedModel& saved) {
  if (!saved.architecture.empty())
    return fmt::format("{} ({})", published_model_name(saved.checkpoint), saved.architecture);
  const fs::path run = run_of_checkpoint(saved.checkpoint);
  return run.empty() ? saved.setup.preset : run_title(run, saved.setup.preset);
}

}  // namespace headscope
