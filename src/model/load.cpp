#include "model/load.h"

#include "core/regular_file.h"
#include "model/checkpoint_files.h"
#include "model/weights.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

// Folders inside that hold checkpoints: the conditions of a study, or those of its seeds. Sorted by name.
std::vector<std::string> runs_inside(const fs::path& place, int depth) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place, ignored))
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
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
  fail_input("{}: holds several models; give one of its conditions: {}{}", place.string(),
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

}  // namespace headscope
