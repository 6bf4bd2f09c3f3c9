#include "run/manifest.h"

#include <array>

#include "core/atomic_file.h"
#include "core/error.h"
#include "run/names.h"

namespace headscope {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string_view status_name(RunStatus status) {
  constexpr std::array<std::string_view, 5> names = {"running", "interrupted", "failed", "incomplete", "complete"};
  return names[static_cast<std::size_t>(status)];
}

ordered_json read_manifest(const fs::path& run) {
  const fs::path file = run / manifest_name;
  std::error_code error;
  if (!fs::exists(file, error)) fail_input("{}: is not a run folder: it holds no {}", run.string(), manifest_name);
  ordered_json manifest = ordered_json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!manifest.is_object()) fail_input("{}: is damaged: not a JSON object", file.string());
  for (const char* key : {"command", "status", "started"})
    if (manifest.contains(key) && !manifest[key].is_string())
      fail_input("{}: is damaged: '{}' is not a text", file.string(), key);
  if (manifest.contains("config") && !manifest["config"].is_object())
    fail_input("{}: is damaged: 'config' is not an object", file.string());
  return manifest;
}

bool is_complete(const fs::path& run) {
  std::error_code error;
  if (!fs::exists(run / manifest_name, error)) return false;
  return read_manifest(run).value("status", "") == status_name(RunStatus::complete);
}

fs::path run_around(const fs::path& folder) {
  std::error_code error;
  fs::path place = fs::absolute(folder / "", error).parent_path();
  constexpr int deepest = 3;  // STUDY/seed_42/QK
  for (int up = 0; up < deepest && !place.empty(); ++up, place = place.parent_path())
    if (fs::exists(place / manifest_name, error)) return place;
  return {};
}

}  // namespace headscope
