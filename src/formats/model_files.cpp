#include "formats/model_files.h"

#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/error.h"
#include "core/json_text.h"
#include "formats/content_hash.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view single_name = "model.safetensors", index_name = "model.safetensors.index.json",
                           config_name = "config.json";

bool there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

bool is_folder(const fs::path& file) {
  std::error_code ignored;
  return fs::is_directory(file, ignored);
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

// Folders in a folder, sorted.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (is_folder(entry.path())) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

// Of the cache: the commit that `main` stands for, in a file of one line.
fs::path snapshot_of_main(const fs::path& cache) {
  const fs::path reference = cache / "refs" / "main";
  std::string commit = read_file(reference);
  while (!commit.empty() && std::isspace(static_cast<unsigned char>(commit.back())) != 0) commit.pop_back();
  if (!is_plain_name(commit))
    fail_input("{}: holds '{}'; expected the name of a folder in {}", reference.string(), excerpt(commit, 80),
               (cache / "snapshots").string());
  const fs::path snapshot = cache / "snapshots" / commit;
  if (!is_folder(snapshot))
    fail_input("{}: names the snapshot {}, which is not there; download the model again", reference.string(),
               excerpt(commit, 80));
  return snapshot;
}

fs::path only_snapshot(const fs::path& cache) {
  const std::vector<fs::path> snapshots = folders_in(cache / "snapshots");
  if (snapshots.size() == 1) return snapshots.front();
  if (snapshots.empty()) fail_input("{}: holds no snapshot; download the model again", (cache / "snapshots").string());
  fail_input("{}: holds {} snapshots and no refs/main; give one of them: {} …", cache.string(), snapshots.size(),
             snapshots.front().string());
}

// What people give instead, and what they should give.
[[noreturn]] void fail_no_weights(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".gguf")) fail_input("{}: holds {}; give that file itself", folder.string(), name);
    if (name.starts_with("pytorch_model") && name.ends_with(".bin"))
      fail_input("{}: holds weights as {} only; download or save the model as safetensors", folder.string(), name);
  }
  fail_input("{}: holds no model; expected {} or {} in it", folder.string(), single_name, index_name);
}

}  // namespace

fs::path find_model_folder(const fs::path& folder) {
  if (!is_folder(folder)) fail_input("{}: is not a folder", folder.string());
  const bool has_files = there(folder / config_name) || there(folder / single_name) || there(folder / index_name);
  if (has_files || !is_folder(folder / "snapshots")) return folder;
  return there(folder / "refs" / "main") ? snapshot_of_main(folder) : only_snapshot(folder);
}

std::map<std::string, std::string> parse_weight_map(std::string_view text, const std::string& origin) {
  const nlohmann::json index = parse_strict_json(text, origin);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    fail_input("{}: has no object 'weight_map' of tensors and their files", origin);
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string()) fail_input("{}: the file of tensor '{}' is not a text", origin, excerpt(tensor));
    const auto& name = file.get_ref<const std::string&>();
    if (!is_plain_name(name))
      fail_input("{}: tensor '{}' is placed in '{}'; expected the name of a file in the same folder", origin,
                 excerpt(tensor), excerpt(name));
    files.emplace_hint(files.end(), tensor, name);  // sorted already
  }
  return files;
}

ModelFiles::ModelFiles(const fs::path& model) {
  if (is_folder(model)) {
    place_ = find_model_folder(model);
    if (there(place_ / single_name))
      open_single(place_ / single_name);
    else if (there(place_ / index_name))
      open_shards(place_ / index_name);
    else
      fail_no_weights(place_);
  } else {
    if (!is_gguf(model)) {
      open_regular_file(model);  // says why it cannot be read
      fail_input("{}: is not a GGUF file; give one, or the folder that holds a model's files", model.string());
    }
    gguf_.emplace(model);
    place_ = gguf_->path();
    weight_files_ = gguf_->paths();
    tensors_ = gguf_->tensors();
  }
  for (std::size_t i = 0; i < tensors_.size(); ++i) places_.emplace(tensors_[i].name, i);
}

void ModelFiles::open_single(const fs::path& file) {
  weight_files_ = {file};
  shards_.emplace_back(file);
  tensors_ = shards_.front().tensors();
}

void ModelFiles::open_shards(const fs::path& index) {
  const std::map<std::string, std::string> placed = parse_weight_map(read_file(index), index.string());
  std::map<std::string, std::size_t> listed;  // tensors of each file
  for (const auto& [tensor, file] : placed) ++listed[file];
  for (const auto& [file, count] : listed) {
    weight_files_.push_back(place_ / file);
    const Safetensors& shard = shards_.emplace_back(weight_files_.back());
    std::size_t found = 0;
    for (const TensorView& tensor : shard.tensors()) {
      const auto place = placed.find(tensor.name);
      if (place == placed.end() || place->second != file) {
        unlisted_.push_back(fmt::format("{} ({})", tensor.name, file));
        continue;
      }
      tensors_.push_back(tensor);
      ++found;
    }
    if (found == count) continue;
    std::unordered_set<std::string_view> names;
    for (const TensorView& tensor : shard.tensors()) names.insert(tensor.name);
    for (const auto& [tensor, where] : placed)
      if (where == file && !names.contains(tensor))
        fail_input("{}: lacks tensor '{}', which {} places there; download the model again",
                   weight_files_.back().string(), excerpt(tensor), index.filename().string());
  }
}

std::optional<fs::path> ModelFiles::file(std::string_view name) const {
  if (gguf_ || !there(place_ / name)) return {};
  return place_ / name;
}

fs::path ModelFiles::required_file(std::string_view name) const {
  if (const auto found = file(name)) return *found;
  fail_input("{}: there is no {}; download the model again", place_.string(), name);
}

const TensorView* ModelFiles::find(std::string_view name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &tensors_[place->second];
}

const TensorView& ModelFiles::get(std::string_view name) const {
  if (const TensorView* found = find(name)) return *found;
  std::vector<std::string> names;
  for (const TensorView& tensor : tensors_) names.push_back(tensor.name);
  const std::string nearest = nearest_name(name, names);
  fail_input("{}: there is no tensor '{}'{}", place_.string(), excerpt(name),
             nearest.empty() ? "" : fmt::format("; did you mean '{}'?", excerpt(nearest)));
}

std::string ModelFiles::weights_hash() const {
  std::vector<const TensorView*> sorted;
  for (const TensorView& tensor : tensors_) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  ContentHash hash;
  for (const TensorView* tensor : sorted) {
    const std::string head = fmt::format("{}:{} {} {};", tensor->name.size(), tensor->name, type_name(tensor->type),
                                         shape_text(tensor->shape));
    hash.add(std::as_bytes(std::span(head)));
    hash.add(tensor->bytes);
  }
  return hash.hex();
}

}  // namespace headscope
