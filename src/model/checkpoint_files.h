// The folder of a checkpoint of ours, RUN/checkpoints/step-000120: model.safetensors, optimizer.safetensors, and
// state.json, which holds their hashes and its own.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/safetensors.h"
#include "run/manifest.h"
#include "run/names.h"

namespace headscope {

inline constexpr const char* model_name = "model.safetensors";
inline constexpr const char* optimizer_name = "optimizer.safetensors";
inline constexpr const char* state_name = "state.json";
inline constexpr const char* published_config_name = "config.json";  // of a published model

std::string checkpoint_name(std::int64_t step);

// The folder of the run that holds the checkpoint; empty where it lies elsewhere.
inline std::filesystem::path run_of_checkpoint(const std::filesystem::path& checkpoint) {
  const std::filesystem::path checkpoints = absolute_folder(checkpoint).parent_path();
  return checkpoints.filename() == checkpoints_name ? checkpoints.parent_path() : std::filesystem::path();
}

// The complete checkpoints in RUN/checkpoints, oldest first.
std::vector<std::filesystem::path> complete_checkpoints(const std::filesystem::path& checkpoints);

// The text of state.json: the object with its hash.
std::string sealed(nlohmann::ordered_json object);

// Throws Error(Fault::input): `what` is wrong with a file of a checkpoint. Says which folder to remove, and from where
// training goes on then.
[[noreturn]] void fail_damaged(const std::filesystem::path& file, std::string_view what);

// The members of state.json. A hash that fits does not make a file that we wrote: each member must have its type.
// Throws Error(Fault::input) naming the file and the member.
class CheckpointReader {
 public:
  explicit CheckpointReader(const std::filesystem::path& checkpoint);

  [[nodiscard]] std::int64_t count(const char* key, std::int64_t most) const;
  [[nodiscard]] double number(const char* key) const;
  [[nodiscard]] std::string text(const char* key) const;
  [[nodiscard]] const nlohmann::ordered_json& object(const char* key) const;
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }
  // The tensors of one of its files, whose content has the hash that state.json names.
  [[nodiscard]] Safetensors tensors(const char* name) const;

 private:
  [[nodiscard]] const nlohmann::ordered_json& member(const char* key) const;

  std::filesystem::path file_;
  nlohmann::ordered_json object_;
};

}  // namespace headscope
