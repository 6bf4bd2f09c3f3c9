#include "train/checkpoint.h"

#include "core/atomic_file.h"
#include "core/bounds.h"
#include "core/json_text.h"
#include "core/regular_file.h"
#include "formats/content_hash.h"
#include "model/weights.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* model_name = "model.safetensors";
constexpr const char* optimizer_name = "optimizer.safetensors";
constexpr const char* state_name = "state.json";
constexpr const char* prefix = "step-";
constexpr const char* partial_prefix = ".partial-";

std::string folder_name(std::int64_t step) {
  return fmt::format("{}{:06}", prefix, step);
}

// The complete checkpoints, oldest first.
std::vector<fs::path> complete_checkpoints(const fs::path& checkpoints) {
  std::vector<std::pair<std::int64_t, fs::path>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    const std::string name = entry.path().filename().string();
    std::int64_t step = 0;
    if (name.starts_with(prefix) && parse_value(std::string_view(name).substr(std::strlen(prefix)), step))
      found.emplace_back(step, entry.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<fs::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
}

// Under another name first: a folder that is half removed must not look like a checkpoint. One in which the user keeps
// a file stays.
void remove_checkpoint(const fs::path& checkpoint) {
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    const fs::path name = entry.path().filename();
    if (name != model_name && name != optimizer_name && name != state_name) return;
  }
  const fs::path aside = checkpoint.parent_path() / (partial_prefix + checkpoint.filename().string());
  fs::rename(checkpoint, aside);
  fs::remove_all(aside);
}

ordered_json to_json(const CheckpointState& state) {
  return {{"step", state.step},         {"position", state.position},
          {"loss_sum", state.loss_sum}, {"loss_count", state.loss_count},
          {"rows", state.rows},         {"data_hash", state.data_hash},
          {"config", state.config}};
}

// The hash covers the object without itself.
std::string sealed(ordered_json object) {
  object["xxh3_128"] = content_hash(json_line(object));
  return json_text(object);
}

// `what` is wrong with a file of a checkpoint.
[[noreturn]] void fail_damaged(const fs::path& file, std::string_view what) {
  fail_input("{}: {}: the checkpoint is damaged; remove its folder to go on from an earlier one", file.string(), what);
}

ordered_json unsealed(const fs::path& file) {
  ordered_json object = parse_json(read_file(file));
  if (!object.is_object() || !object.contains("xxh3_128")) fail_damaged(file, "is not valid");
  const ordered_json hash = object["xxh3_128"];
  object.erase("xxh3_128");
  if (hash != content_hash(json_line(object))) fail_damaged(file, "its content does not match its hash");
  return object;
}

// Members of state.json, each with the type that it must have: a hash that fits does not make a file that we wrote.
class StateReader {
 public:
  explicit StateReader(fs::path file) : file_(std::move(file)), object_(unsealed(file_)) {}

  [[nodiscard]] std::int64_t count(const char* key, std::int64_t most) const {
    return checked_count(key, member(key), most);
  }
  [[nodiscard]] double number(const char* key) const {
    if (!member(key).is_number()) fail_damaged(file_, fmt::format("'{}' is not a number", key));
    return member(key).get<double>();
  }
  [[nodiscard]] std::string text(const char* key) const {
    if (!member(key).is_string()) fail_damaged(file_, fmt::format("'{}' is not a text", key));
    return member(key).get<std::string>();
  }
  [[nodiscard]] const ordered_json& object(const char* key) const {
    if (!member(key).is_object()) fail_damaged(file_, fmt::format("'{}' is not an object", key));
    return member(key);
  }
  [[nodiscard]] TableRows rows() const {
    TableRows rows;
    for (const auto& [table, value] : object("rows").items())
      rows[table] = checked_count("rows", value, std::numeric_limits<std::int64_t>::max());
    return rows;
  }
  [[nodiscard]] const fs::path& file() const { return file_; }

 private:
  [[nodiscard]] const ordered_json& member(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail_damaged(file_, fmt::format("'{}' is missing", key));
    return *found;
  }
  [[nodiscard]] std::int64_t checked_count(const char* key, const ordered_json& value, std::int64_t most) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
      fail_damaged(file_, fmt::format("'{}' is not a whole number from 0 to {}", key, most));
    return value.get<std::int64_t>();
  }

  fs::path file_;
  ordered_json object_;
};

void check_hash(const fs::path& file, const Safetensors& tensors, const ordered_json& hashes) {
  const std::string name = file.filename().string();
  if (!hashes.contains(name) || hashes[name] != tensors.hash())
    fail_damaged(file, fmt::format("its content does not match the hash in {}", state_name));
}

void write_folder(const fs::path& folder, const Trainer& trainer, const CheckpointState& state) {
  NamedTensors weights;
  for_each_parameter(trainer.model(),
                     [&](const std::string& name, const at::Tensor& value) { weights.emplace_back(name, value); });
  ordered_json object = to_json(state);
  object["hashes"] = {{model_name, save_tensors(folder / model_name, weights)},
                      {optimizer_name, save_tensors(folder / optimizer_name, trainer.optimizers().state())}};
  write_file(folder / state_name, sealed(std::move(object)));
}

void load_weights(const fs::path& checkpoint, const StateReader& state, const Decoder& model) {
  const fs::path file = checkpoint / model_name;
  const Safetensors weights(file);
  check_hash(file, weights, state.object("hashes"));
  for_each_parameter(model, [&](const std::string& name, const at::Tensor& value) {
    load_tensor(weights.get(name), value, file.string());
  });
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

// Folders inside that hold checkpoints: the conditions of a study, or those of its seeds. Sorted by name.
std::vector<std::string> runs_inside(const fs::path& place, int depth) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place, ignored))
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::vector<std::string> runs;
  for (const fs::path& folder : folders) {
    if (!complete_checkpoints(folder / "checkpoints").empty()) runs.push_back(folder.string());
    if (depth > 1)
      for (std::string& run : runs_inside(folder, depth - 1)) runs.push_back(std::move(run));
  }
  return runs;
}

// The folder of a checkpoint that is meant by it or by the run that holds it.
fs::path checkpoint_at(const fs::path& place) {
  std::error_code ignored;
  if (fs::exists(place / state_name, ignored)) return place;
  const std::vector<fs::path> complete = complete_checkpoints(place / "checkpoints");
  if (!complete.empty()) return complete.back();
  const std::vector<std::string> runs = runs_inside(place, /*depth=*/2);
  if (runs.empty())
    fail_input("{}: is no checkpoint (it has no {}) and holds none; give RUN/checkpoints/step-000120 or RUN",
               place.string(), state_name);
  constexpr std::size_t most_named = 9;  // the conditions of three seeds
  fail_input("{}: holds several models; give one of its conditions: {}{}", place.string(),
             fmt::join(std::span(runs).first(std::min(most_named, runs.size())), ", "),
             runs.size() > most_named ? ", …" : "");
}

// The setup in the configuration of a run, which may hold more.
Setup setup_of(const ordered_json& config, const fs::path& file) {
  Setup setup;
  std::vector<std::string> known = field_names(setup);
  std::erase(known, "threads");  // of the machine that trained it
  for (const ConfigEntry& entry : parse_yaml(yaml_of(config), file.string()))
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) apply(setup, entry);
  const auto model = config.find("model");
  const ordered_json qk_norm =
      model != config.end() && model->is_object() ? model->value("qk_norm", ordered_json()) : ordered_json();
  if (!qk_norm.is_string() || !parse_value(qk_norm.get<std::string>(), setup.model.qk_norm))
    fail_input("{}: says {} for model.qk_norm; expected {}", file.string(), qk_norm.dump(), expected_value<QkNorm>());
  setup.model.positions = setup.train.seq_len;
  validate(setup);
  return setup;
}

}  // namespace

void save_checkpoint(const fs::path& checkpoints, const Trainer& trainer, const CheckpointState& state,
                     std::int64_t keep) {
  const fs::path target = checkpoints / folder_name(state.step);
  if (fs::exists(target)) return;  // the same step of the same run is the same state
  const fs::path partial = checkpoints / (partial_prefix + folder_name(state.step));
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  try {
    fs::create_directories(partial);
    write_folder(partial, trainer, state);
    fs::rename(partial, target);
    sync_folder(checkpoints);
  } catch (const fs::filesystem_error& error) {
    fs::remove_all(partial, ignored);
    fail_runtime("{}: {}", target.string(), error.code().message());
  } catch (const Error&) {
    fs::remove_all(partial, ignored);
    throw;
  }
  std::vector<fs::path> complete = complete_checkpoints(checkpoints);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < complete.size(); ++i) remove_checkpoint(complete[i]);
}

std::optional<fs::path> latest_checkpoint(const fs::path& checkpoints) {
  const std::vector<fs::path> complete = complete_checkpoints(checkpoints);
  if (complete.empty()) return std::nullopt;
  return complete.back();
}

CheckpointState load_checkpoint(const fs::path& checkpoint, Trainer& trainer) {
  const StateReader reader(checkpoint / state_name);
  const Safetensors moments(checkpoint / optimizer_name);
  check_hash(checkpoint / optimizer_name, moments, reader.object("hashes"));
  load_weights(checkpoint, reader, trainer.model());
  const std::int64_t steps = trainer.options().steps();
  CheckpointState state;
  state.step = reader.count("step", steps);
  state.position = reader.count("position", most_tokens);
  state.loss_sum = reader.number("loss_sum");
  state.loss_count = reader.count("loss_count", steps);
  state.rows = reader.rows();
  state.data_hash = reader.text("data_hash");
  state.config = reader.object("config");
  for (const auto& [name, value] : trainer.optimizers().state())
    load_tensor(moments.get(name), value, (checkpoint / optimizer_name).string());
  trainer.go_to(state.step);
  return state;
}

SavedModel open_checkpoint(const fs::path& place, at::Device device) {
  SavedModel saved;
  saved.checkpoint = checkpoint_at(place);
  const StateReader reader(saved.checkpoint / state_name);
  saved.setup = setup_of(reader.object("config"), reader.file());
  saved.step = reader.count("step", saved.setup.train.steps());
  saved.tokens = saved.step * saved.setup.train.tokens_per_step();
  saved.data_hash = reader.text("data_hash");
  check_model_size(saved.checkpoint / model_name, saved.setup.model);
  saved.model = make_decoder(saved.setup.model, /*seed=*/0, device);
  for_each_parameter(saved.model, [](const std::string&, at::Tensor& value) { value.set_requires_grad(false); });
  load_weights(saved.checkpoint, reader, saved.model);
  return saved;
}

}  // namespace headscope
