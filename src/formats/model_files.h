// A published model on disk: where its files are, and its weights by name, whatever files they are in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/gguf.h"
#include "formats/safetensors.h"
#include "formats/tensor.h"

namespace headscope {

// The folder that holds the files of a model: the given folder; or, where it is one of the Hugging Face cache
// (models--org--name), the snapshot that its refs/main names, or its only one. Throws Error(Fault::input).
std::filesystem::path find_model_folder(const std::filesystem::path& folder);

// Tensor to file of an index (model.safetensors.index.json). A file is a plain name, never a path. Throws
// Error(Fault::input); `origin` names the index.
std::map<std::string, std::string> parse_weight_map(std::string_view text, const std::string& origin);

// All files stay mapped: a tensor is read when its bytes are touched. Views stay valid as long as the object exists,
// also after a move.
class ModelFiles {
 public:
  // A folder (see find_model_folder) with model.safetensors, or with shards and model.safetensors.index.json; or a GGUF
  // file. Throws Error(Fault::input) when there is no such model, when a file is not as its format asks, and when a
  // shard lacks a tensor that the index places in it (naming both).
  explicit ModelFiles(const std::filesystem::path& model);

  [[nodiscard]] const std::filesystem::path& place() const { return place_; }  // the folder, or the (first) GGUF file
  // Null for a folder.
  [[nodiscard]] const Gguf* gguf() const { return gguf_ ? &*gguf_ : nullptr; }
  // config.json or tokenizer.json, for example. Nothing when it is not there; a GGUF file has none.
  [[nodiscard]] std::optional<std::filesystem::path> file(std::string_view name) const;
  // The same. Throws Error(Fault::input) naming folder and file when it is not there.
  [[nodiscard]] std::filesystem::path required_file(std::string_view name) const;
  [[nodiscard]] const std::vector<std::filesystem::path>& weight_files() const { return weight_files_; }

  [[nodiscard]] const std::vector<TensorView>& tensors() const { return tensors_; }
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Null when there is none.
  [[nodiscard]] const TensorView* find(std::string_view name) const;
  // Throws Error(Fault::input) with the nearest name when there is none.
  [[nodiscard]] const TensorView& get(std::string_view name) const;

  // Tensors in shards that the index does not place there, "name (shard)"; they are not among tensors().
  [[nodiscard]] const std::vector<std::string>& unlisted() const { return unlisted_; }

  // Of names, types, shapes and values, whatever the files and the order in them; all weights are read for it.
  [[nodiscard]] std::string weights_hash() const;

 private:
  void open_single(const std::filesystem::path& file);
  void open_shards(const std::filesystem::path& index);

  std::filesystem::path place_;
  std::vector<std::filesystem::path> weight_files_;
  std::vector<Safetensors> shards_;
  std::optional<Gguf> gguf_;
  std::vector<TensorView> tensors_;
  std::unordered_map<std::string_view, std::size_t> places_;  // names of tensors_ to index
  std::vector<std::string> unlisted_;
};

}  // namespace headscope
