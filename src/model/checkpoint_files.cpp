#include "model/checkpoint_files.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "core/atomic_file.h"
#include "core/config.h"
#include "core/json_text.h"
#include "formats/content_hash.h"

namespace headscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* prefix = "step-";
constexpr const char* hash_key = "xxh3_128";

// Returns body(), which reads a file of a checkpoint. What it refuses is damage, unless the file is there and cannot be
// read.
template <class Body>
auto as_damage(const fs::path& file, Body&& body) {
  try {
    return body();
  } catch (const Error& error) {
    std::error_code ignored;
    const std::string said = error.what(), name = file.string() + ": ";
    if (said.starts_with("cannot read") && fs::exists(file, ignored)) throw;
    fail_damaged(file, said.starts_with(name) ? said.substr(name.size()) : said);
  }
}

ordered_json unsealed(const fs::path& file) {
  ordered_json object = parse_json(as_damage(file, [&] { return read_file(file, most_text_bytes); }));
  if (!object.is_object() || !object.contains(hash_key)) fail_damaged(file, "is not valid");
  const ordered_json hash = object[hash_key];
  object.erase(hash_key);
  if (hash != content_hash(json_line(object))) fail_damaged(file, "its content does not match its hash");
  return object;
}

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  return fmt::format("{}{:06}", prefix, step);
}

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

// The hash covers the object without itself.
std::string sealed(ordered_json object) {
  object[hash_key] = content_hash(json_line(object));
  return json_text(object);
}

void fail_damaged(const fs::path& file, std::string_view what) {
  const fs::path checkpoint = file.parent_path();
  const std::vector<fs::path> complete = complete_checkpoints(checkpoint.parent_path());
  const auto found = std::ranges::find(complete, checkpoint);
  const std::string earlier = found == complete.end()     ? "an earlier one"
                              : found == complete.begin() ? "the start, since there is no earlier one"
                                                          : std::prev(found)->filename().string();
  fail_input("{}: {}: the checkpoint is damaged; remove the folder {} to go on from {}", file.string(), what,
             checkpoint.string(), earlier);
}

CheckpointReader::CheckpointReader(const fs::path& checkpoint)
    : file_(checkpoint / state_name), object_(unsealed(file_)) {}

const ordered_json& CheckpointReader::member(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) fail_damaged(file_, fmt::format("'{}' is missing", key));
  return *found;
}

std::int64_t CheckpointReader::count(const char* key, std::int64_t most) const {
  const ordered_json& value = member(key);
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
    fail_damaged(file_, fmt::format("'{}' is not a whole number from 0 to {}", key, most));
  return value.get<std::int64_t>();
}

double CheckpointReader::number(const char* key) const {
  if (!member(key).is_number()) fail_damaged(file_, fmt::format("'{}' is not a number", key));
  return member(key).get<double>();
}

std::string CheckpointReader::text(const char* key) const {
  if (!member(key).is_string()) fail_damaged(file_, fmt::format("'{}' is not a text", key));
  return member(key).get<std::string>();
}

const ordered_json& CheckpointReader::object(const char* key) const {
  if (!member(key).is_object()) fail_damaged(file_, fmt::format("'{}' is not an object", key));
  return member(key);
}

Safetensors CheckpointReader::tensors(const char* name) const {
  const fs::path file = file_.parent_path() / name;
  Safetensors tensors = as_damage(file, [&] { return Safetensors(file); });
  const ordered_json& hashes = object("hashes");
  if (!hashes.contains(name) || hashes[name] != tensors.hash())
    fail_damaged(file, fmt::format("its content does not match the hash in {}", state_name));
  return tensors;
}

}  // namespace headscope
